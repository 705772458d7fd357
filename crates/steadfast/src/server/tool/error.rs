//! The errors of a tool's handler, and how they are sent to the client.
//!
//! A tool fails with one of two kinds of errors, and a model sees only one of them. A [`ToolError`] is a result with
//! `isError`: the model reads it and can try something else. A [`crate::Error`] is a JSON-RPC error: the call itself
//! was wrong, and the client handles it. `?` converts every error into a [`ToolError`], and a [`crate::Error`] inside
//! of it is still sent as a JSON-RPC error.
//!
//! [`ToolError`] does not implement [`std::error::Error`], because then the conversion from *every* error, including
//! those of `anyhow`, would conflict with the conversion of a type into itself.

use std::error::Error as StdError;
use std::fmt;

use steadfast_model::{CallToolResult, Content};

use crate::error::{Error, ErrorKind, write_with_causes};

/// The result of a tool's handler: the result of the call, or a failure.
pub type ToolReply = Result<CallToolResult, ToolError>;

/// The failure of a tool, made by `?` from any error.
///
/// ```
/// use steadfast::ToolError;
///
/// fn parse(text: &str) -> Result<u16, ToolError> {
///     let port: u16 = text.parse()?; // any error
///     if port < 1024 {
///         return Err(ToolError::new("ports below 1024 need root")); // or a sentence
///     }
///     Ok(port)
/// }
/// assert_eq!(parse("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
///
/// The model reads the error and its causes: do not put anything into its text that the model must not read.
pub struct ToolError(Box<ToolErrorRepr>);

enum ToolErrorRepr {
    Message(String),
    Source(Box<dyn StdError + Send + Sync>),
    Result(CallToolResult),
    Protocol(Error),
}

impl ToolError {
    /// Creates a failure of the tool with this text for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(ToolErrorRepr::Message(message.into())))
    }

    /// Creates a failure of the tool with these pieces of content for the model.
    ///
    /// ```
    /// use steadfast::{Content, ToolError};
    /// let error = ToolError::from_content([Content::text("it looked like this:"), Content::image("AA==", "image/png")]);
    /// assert_eq!(error.into_result().unwrap().content.len(), 2);
    /// ```
    pub fn from_content(content: impl IntoIterator<Item = impl Into<Content>>) -> Self {
        Self::from_result(CallToolResult::new(content.into_iter().map(Into::into).collect()))
    }

    /// Creates a failure of the tool with a whole result, including structured content and `_meta`. The result is
    /// marked as an error.
    pub fn from_result(result: CallToolResult) -> Self {
        Self(Box::new(ToolErrorRepr::Result(result)))
    }

    /// Adds a context before the text of this failure: what was being done when the failure happened.
    ///
    /// ```
    /// use steadfast::ToolError;
    /// let error = ToolError::new("no such host").context("asking the station");
    /// assert_eq!(error.to_string(), "asking the station: no such host");
    /// ```
    ///
    /// A [`crate::Error`] inside of this failure stays a protocol error and is not changed.
    pub fn context(self, context: impl fmt::Display) -> Self {
        match *self.0 {
            ToolErrorRepr::Protocol(_) => self,
            ToolErrorRepr::Result(mut result) => {
                result.content.insert(0, Content::text(context.to_string()));
                Self::from_result(result)
            }
            ToolErrorRepr::Message(_) | ToolErrorRepr::Source(_) => Self::new(format!("{context}: {self}")),
        }
    }

    /// Returns the error that this failure was made from, if that error is an `E`.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        match &*self.0 {
            ToolErrorRepr::Source(source) => source.downcast_ref(),
            ToolErrorRepr::Protocol(error) => (error as &(dyn StdError + 'static)).downcast_ref(),
            ToolErrorRepr::Message(_) | ToolErrorRepr::Result(_) => None,
        }
    }

    /// Converts the failure into the result that the model reads; `Err` if the failure is a protocol error, which is
    /// not for the model.
    pub fn into_result(self) -> Result<CallToolResult, Error> {
        match *self.0 {
            ToolErrorRepr::Message(message) => Ok(CallToolResult::error(message)),
            ToolErrorRepr::Source(source) => Ok(CallToolResult::error(with_causes(&*source))),
            ToolErrorRepr::Result(result) => Ok(result.with_is_error(true)),
            ToolErrorRepr::Protocol(error) => Err(error),
        }
    }

    /// Converts the failure into a JSON-RPC error, for methods whose results cannot report a failure: prompts,
    /// resources and completions. The JSON-RPC error that the client gets contains the messages of the failure and of
    /// its causes.
    pub(crate) fn into_error(self) -> Error {
        match self.into_result() {
            Err(error) => error,
            Ok(result) => Error::internal(Self::from_result(result).to_string()),
        }
    }

    /// Returns the failure's protocol error, which is not for the model, if it has one.
    pub(crate) fn protocol_error(&self) -> Option<&Error> {
        match &*self.0 {
            ToolErrorRepr::Protocol(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let repr = match error.into().downcast::<Error>() {
            // The model should know what the user decided.
            Ok(error) if matches!(error.kind(), ErrorKind::Declined | ErrorKind::Dismissed) => {
                ToolErrorRepr::Source(error)
            }
            Ok(error) => ToolErrorRepr::Protocol(*error),
            Err(source) => ToolErrorRepr::Source(source),
        };
        Self(Box::new(repr))
    }
}

/// Writes the failure of a tool as the text that the model reads.
impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ToolErrorRepr::Message(message) => formatter.write_str(message),
            ToolErrorRepr::Source(source) => formatter.write_str(&with_causes(&**source)),
            ToolErrorRepr::Protocol(error) => error.fmt(formatter),
            ToolErrorRepr::Result(result) => {
                let mut texts = result.content.iter().filter_map(Content::as_text);
                formatter.write_str(texts.next().unwrap_or("the tool failed"))?;
                texts.try_for_each(|text| write!(formatter, "\n{text}"))
            }
        }
    }
}

/// The debug output is the error and its causes, one per line, because `main` prints the debug output of an error that
/// it returns.
impl fmt::Debug for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            ToolErrorRepr::Source(source) => write_with_causes(&**source, formatter),
            ToolErrorRepr::Protocol(error) => fmt::Debug::fmt(error, formatter),
            ToolErrorRepr::Message(_) | ToolErrorRepr::Result(_) => fmt::Display::fmt(self, formatter),
        }
    }
}

/// Returns the messages of an error and of its causes as one line, separated by colons. A cause is not repeated if
/// the message of its parent error already ends with it.
fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as `anyhow` and `eyre` have them: it converts into a boxed error and does not implement `Error`.
    struct Anyhow(&'static str);

    impl From<Anyhow> for Box<dyn StdError + Send + Sync> {
        fn from(error: Anyhow) -> Self {
            error.0.into()
        }
    }

    #[derive(Debug)]
    struct Outer {
        repeats_its_cause: bool,
    }

    impl fmt::Display for Outer {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(if self.repeats_its_cause { "outer: an error" } else { "outer" })
        }
    }

    impl StdError for Outer {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&fmt::Error)
        }
    }

    fn caught(body: impl FnOnce() -> Result<(), ToolError>) -> ToolError {
        body().unwrap_err()
    }

    #[test]
    fn every_kind_of_error_goes_through_the_question_mark() {
        let io = caught(|| Ok(Err(std::io::Error::other("disk"))?));
        let text = caught(|| Err("words")?);
        let owned = caught(|| Err(String::from("words"))?);
        let anyhow = caught(|| Ok(Err(Anyhow("anyhow"))?));
        let boxed = caught(|| Ok(Err(Box::<dyn StdError + Send + Sync>::from("boxed"))?));
        let own = caught(|| Err(ToolError::new("own"))?);
        for error in [io, text, owned, anyhow, boxed, own] {
            assert!(error.protocol_error().is_none());
        }
    }

    #[test]
    fn a_protocol_error_stays_one() {
        let direct = caught(|| Ok(Err(Error::invalid_params("no"))?));
        let boxed: Box<dyn StdError + Send + Sync> = Error::invalid_params("no").into();
        for error in [direct, caught(|| Ok(Err(boxed)?))] {
            let error = error.protocol_error().unwrap();
            assert_eq!(error.object().code, steadfast_model::code::INVALID_PARAMS);
        }
    }

    #[test]
    fn the_model_reads_what_the_user_decided() {
        for error in [Error::declined(), Error::dismissed()] {
            let error = caught(|| Ok(Err(error)?));
            assert!(error.to_string().starts_with("the user"), "{error}");
            assert!(error.protocol_error().is_none());
        }
    }

    #[test]
    fn the_model_reads_the_causes_once() {
        let plain = ToolError::from(Outer { repeats_its_cause: false });
        let repeating = ToolError::from(Outer { repeats_its_cause: true });
        assert_eq!(plain.to_string(), format!("outer: {}", fmt::Error));
        assert!(repeating.to_string().starts_with("outer: an error"));
        assert_eq!(format!("{plain:?}"), format!("outer\n  caused by: {}", fmt::Error));
    }

    #[test]
    fn a_failure_with_a_result_is_marked_as_an_error() {
        let error = ToolError::from_result(CallToolResult::text("half done").with_structured_content(7));
        let result = error.into_result().unwrap();
        assert!(result.is_error());
        assert_eq!(result.structured_content, Some(7.into()));
    }

    #[test]
    fn context_says_what_was_being_done() {
        let error = ToolError::from(std::io::Error::other("disk")).context("saving");
        assert_eq!(error.to_string(), "saving: disk");
        let error = ToolError::from(Error::internal("broken")).context("saving");
        assert!(error.protocol_error().is_some());
    }

    #[test]
    fn the_source_can_be_downcast() {
        let error = ToolError::from(std::io::Error::from(std::io::ErrorKind::NotFound));
        assert!(error.downcast_ref::<std::io::Error>().is_some());
        assert!(error.downcast_ref::<fmt::Error>().is_none());
    }

    #[test]
    fn tool_errors_are_one_pointer_wide() {
        assert_eq!(size_of::<ToolError>(), size_of::<usize>());
    }
}
