//! The options in `#[server(..)]`, `#[tool(..)]`, `#[prompt(..)]`, `#[resource(..)]` and `#[arg(..)]`.

use proc_macro2::{Span, TokenStream};
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, LitBool, LitStr, Meta, Result, Token, parenthesized};

use crate::uri::Uri;

/// What is said about every kind of thing.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) icons: Vec<LitStr>,
}

impl Described {
    /// Takes an option, if it is one of these.
    fn take(&mut self, noun: &str, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        match name_of(meta).as_str() {
            "name" => {
                let name = text(meta, self.name.is_some())?;
                // A resource is found by its URI, so its name may be anything.
                if noun != "resource" {
                    check_name(noun, &name)?;
                }
                self.name = Some(name);
            }
            "title" => self.title = Some(text(meta, self.title.is_some())?),
            "description" => self.description = Some(text(meta, self.description.is_some())?),
            "icon" => self.icons.push(text(meta, false)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `#[tool(..)]`
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) described: Described,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) cooperative: bool,
    /// Variants of `Need`.
    pub(crate) needs: Vec<Ident>,
    /// A variant of `TaskSupport`.
    pub(crate) task: Option<Ident>,
    /// Asks what has to be known before a call becomes a task.
    pub(crate) ask_first: Option<Box<Expr>>,
}

impl ToolOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(tokens)?;
        if let (Some(ask_first), None) = (&options.ask_first, &options.task) {
            let message = "this is asked before a call becomes a task: add `task = optional` or `task = required`";
            return Err(Error::new_spanned(ask_first, message));
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.described.take("tool", meta)? {
            return Ok(());
        }
        match name_of(meta).as_str() {
            "read_only" => self.read_only = Some(flag(meta, self.read_only.is_some())?),
            "destructive" => self.destructive = Some(flag(meta, self.destructive.is_some())?),
            "idempotent" => self.idempotent = Some(flag(meta, self.idempotent.is_some())?),
            "open_world" => self.open_world = Some(flag(meta, self.open_world.is_some())?),
            "cancel" => self.cooperative = cooperative(meta)?,
            "needs" => needs("tool", meta, &mut self.needs)?,
            "task" => self.task = Some(task(&meta.value()?.parse()?)?),
            "ask_first" => {
                self.ask_first = Some(expression(meta, self.ask_first.is_some(), "the name of an `async fn`")?);
            }
            _ => {
                return Err(meta.error(
                    "unknown option: `#[tool]` has `name`, `title`, `description`, `read_only`, `destructive`, \
                     `idempotent`, `open_world`, `needs`, `cancel`, `task`, `ask_first` and `icon`",
                ));
            }
        }
        Ok(())
    }
}

/// `#[prompt(..)]`
#[derive(Default)]
pub(crate) struct PromptOptions {
    pub(crate) described: Described,
    pub(crate) cooperative: bool,
    /// Variants of `Need`.
    pub(crate) needs: Vec<Ident>,
}

impl PromptOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.described.take("prompt", meta)? {
            return Ok(());
        }
        match name_of(meta).as_str() {
            "cancel" => self.cooperative = cooperative(meta)?,
            "needs" => needs("prompt", meta, &mut self.needs)?,
            _ => {
                return Err(meta.error(
                    "unknown option: `#[prompt]` has `name`, `title`, `description`, `needs`, `cancel` and `icon`",
                ));
            }
        }
        Ok(())
    }
}

/// `#[resource("..", ..)]`
pub(crate) struct ResourceOptions {
    pub(crate) uri: Uri,
    pub(crate) described: Described,
    pub(crate) mime_type: Option<LitStr>,
    pub(crate) size: Option<Box<Expr>>,
    pub(crate) annotations: Option<Box<Expr>>,
    pub(crate) cache: Option<Box<Expr>>,
    pub(crate) cooperative: bool,
    /// Variants of `Need`.
    pub(crate) needs: Vec<Ident>,
}

impl ResourceOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let first = |input: ParseStream<'_>| {
            let missing = "write where it is: `#[resource(\"weather://{city}/now\")]`";
            let uri: LitStr = input.parse().map_err(|error| Error::new(error.span(), missing))?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Ok((uri, input.parse::<TokenStream>()?))
        };
        let (uri, rest) = first.parse2(tokens)?;
        let uri = Uri::understand(uri)?;
        let mut options = Self {
            uri,
            described: Described::default(),
            mime_type: None,
            size: None,
            annotations: None,
            cache: None,
            cooperative: false,
            needs: Vec::new(),
        };
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(rest)?;
        if let (Some(size), false) = (&options.size, options.uri.variables.is_empty()) {
            let message = "the resources of a template are of many sizes: leave `size` out";
            return Err(Error::new_spanned(size, message));
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.described.take("resource", meta)? {
            return Ok(());
        }
        match name_of(meta).as_str() {
            "mime_type" => self.mime_type = Some(text(meta, self.mime_type.is_some())?),
            "size" => self.size = Some(expression(meta, self.size.is_some(), "a number of bytes")?),
            "annotations" => {
                let how = "`Annotations::new().with_priority(1.0)`";
                self.annotations = Some(expression(meta, self.annotations.is_some(), how)?);
            }
            "cache" => {
                let how = "`Cache::new(60_000, CacheScope::Public)`";
                self.cache = Some(expression(meta, self.cache.is_some(), how)?);
            }
            "cancel" => self.cooperative = cooperative(meta)?,
            "needs" => needs("resource", meta, &mut self.needs)?,
            _ => {
                return Err(meta.error(
                    "unknown option: `#[resource]` has, after the URI, `name`, `title`, `description`, `mime_type`, \
                     `size`, `annotations`, `cache`, `needs`, `cancel` and `icon`",
                ));
            }
        }
        Ok(())
    }
}

/// `#[server(..)]`
#[derive(Default)]
pub(crate) struct ServerOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) instructions: Option<LitStr>,
    pub(crate) website: Option<LitStr>,
    pub(crate) icons: Vec<LitStr>,
    pub(crate) expect_prompts: Option<bool>,
    pub(crate) expect_resources: Option<bool>,
    pub(crate) part: Option<Ident>,
    pub(crate) parts: Vec<Ident>,
}

impl ServerOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let mut others = None;
        let parser = syn::meta::parser(|meta| {
            if !meta.path.is_ident("part") {
                others = Some(meta.path.clone());
            }
            options.take(&meta)
        });
        parser.parse2(tokens)?;
        if let (Some(_), Some(other)) = (&options.part, others) {
            let message = "a part has no options of its own: write this on the main block, which has `parts(..)`";
            return Err(Error::new_spanned(other, message));
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match name_of(meta).as_str() {
            "name" => self.name = Some(text(meta, self.name.is_some())?),
            "title" => self.title = Some(text(meta, self.title.is_some())?),
            "version" => self.version = Some(text(meta, self.version.is_some())?),
            "description" => self.description = Some(text(meta, self.description.is_some())?),
            "instructions" => self.instructions = Some(text(meta, self.instructions.is_some())?),
            "website" => self.website = Some(text(meta, self.website.is_some())?),
            "icon" => self.icons.push(text(meta, false)?),
            "expect_prompts" => self.expect_prompts = Some(flag(meta, self.expect_prompts.is_some())?),
            "expect_resources" => self.expect_resources = Some(flag(meta, self.expect_resources.is_some())?),
            "part" => self.part = Some(meta.value()?.parse()?),
            "parts" => {
                let names;
                parenthesized!(names in meta.input);
                self.parts.extend(Punctuated::<Ident, Token![,]>::parse_terminated(&names)?);
            }
            _ => {
                return Err(meta.error(
                    "unknown option: `#[server]` has `name`, `title`, `version`, `description`, `instructions`, \
                     `website`, `icon`, `expect_prompts`, `expect_resources`, `part = ..` and `parts(..)`",
                ));
            }
        }
        Ok(())
    }
}

/// `#[arg(..)]`
#[derive(Default)]
pub(crate) struct ArgumentOptions {
    pub(crate) default: Option<DefaultValue>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) complete: Option<Expr>,
}

/// What an argument is if it is left out.
pub(crate) enum DefaultValue {
    /// The default of its type. The place is that of the option.
    OfType(Span),
    /// This.
    Value(Box<Expr>),
}

impl ArgumentOptions {
    pub(crate) fn take_from(&mut self, attribute: &Attribute) -> Result<()> {
        if let Meta::Path(path) = &attribute.meta {
            return Err(Error::new_spanned(path, "write `#[arg(default = ..)]`, or leave `#[arg]` out"));
        }
        attribute.parse_nested_meta(|meta| self.take(&meta))
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match name_of(meta).as_str() {
            "default" if self.default.is_some() => return Err(meta.error("given twice")),
            "default" if meta.input.peek(Token![=]) => {
                self.default = Some(DefaultValue::Value(meta.value()?.parse()?));
            }
            "default" => {
                let place = meta.path.get_ident().map_or_else(Span::call_site, Ident::span);
                self.default = Some(DefaultValue::OfType(place));
            }
            "rename" => self.rename = Some(text(meta, self.rename.is_some())?),
            "description" => self.description = Some(text(meta, self.description.is_some())?),
            "complete" if self.complete.is_some() => return Err(meta.error("given twice")),
            "complete" if meta.input.peek(Token![=]) => self.complete = Some(meta.value()?.parse()?),
            "complete" => return Err(meta.error("write `complete = [\"one\", \"two\"]`, or the name of an `async fn`")),
            _ => {
                return Err(
                    meta.error("unknown option: `#[arg]` has `default`, `rename`, `description` and `complete`")
                );
            }
        }
        Ok(())
    }
}

fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

fn text(meta: &ParseNestedMeta<'_>, given: bool) -> Result<LitStr> {
    if given {
        return Err(meta.error("given twice"));
    }
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("write `{} = \"..\"`", name_of(meta))));
    }
    let value = meta.value()?;
    value.parse().map_err(|_| value.error("write a text in quotes"))
}

/// An expression; `how` says what to write.
fn expression(meta: &ParseNestedMeta<'_>, given: bool, how: &str) -> Result<Box<Expr>> {
    if given {
        return Err(meta.error("given twice"));
    }
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("write `{} = ..`, with {how}", name_of(meta))));
    }
    meta.value()?.parse()
}

/// `needs = sampling`, or `needs(sampling, roots)`.
fn needs(noun: &str, meta: &ParseNestedMeta<'_>, needs: &mut Vec<Ident>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        needs.push(need(noun, &meta.value()?.parse()?)?);
        return Ok(());
    }
    let names;
    parenthesized!(names in meta.input);
    for name in Punctuated::<Ident, Token![,]>::parse_terminated(&names)? {
        needs.push(need(noun, &name)?);
    }
    Ok(())
}

/// The variant of `TaskSupport` that the word stands for.
fn task(name: &Ident) -> Result<Ident> {
    let variant = match name.to_string().as_str() {
        "optional" => "Optional",
        "required" => "Required",
        _ => return Err(Error::new(name.span(), "write `task = optional` or `task = required`")),
    };
    Ok(Ident::new(variant, name.span()))
}

/// The variant of `Need` that is meant.
fn need(noun: &str, name: &Ident) -> Result<Ident> {
    let variant = match name.to_string().as_str() {
        "elicitation" => "Elicitation",
        "elicitation_url" => "ElicitationUrl",
        "sampling" => "Sampling",
        "sampling_tools" => "SamplingTools",
        "roots" => "Roots",
        _ => {
            let known = "`elicitation`, `elicitation_url`, `sampling`, `sampling_tools` and `roots`";
            return Err(Error::new(name.span(), format!("a {noun} can need {known}")));
        }
    };
    Ok(Ident::new(variant, name.span()))
}

fn flag(meta: &ParseNestedMeta<'_>, given: bool) -> Result<bool> {
    if given {
        return Err(meta.error("given twice"));
    }
    if !meta.input.peek(Token![=]) {
        return Ok(true);
    }
    let value = meta.value()?;
    let flag: LitBool = value.parse().map_err(|_| value.error("write `true` or `false`"))?;
    Ok(flag.value)
}

/// What a cancellation does.
fn cooperative(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    let how: Ident = meta.value()?.parse()?;
    match how.to_string().as_str() {
        "cooperative" => Ok(true),
        "drop" => Ok(false),
        _ => Err(Error::new(how.span(), "write `cancel = cooperative` or `cancel = drop`")),
    }
}

/// The names that the specification asks for, which every client accepts.
fn check_name(noun: &str, name: &LitStr) -> Result<()> {
    let text = name.value();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=128).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    let message = format!(
        "a {noun}'s name has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `_`, `-` and `.`; \
         for a name that people see use `title`"
    );
    Err(Error::new(name.span(), message))
}
