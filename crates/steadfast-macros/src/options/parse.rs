//! Parsers for the values of macro options.

use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitBool, LitStr, Result, Token, parenthesized};

pub(super) fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

pub(super) fn text(meta: &ParseNestedMeta<'_>, given: bool) -> Result<LitStr> {
    if given {
        return Err(meta.error("duplicate option"));
    }
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("write `{} = \"..\"`", name_of(meta))));
    }
    let value = meta.value()?;
    value.parse().map_err(|_| value.error("write a string in quotes"))
}

/// Parses a macro option whose value is an expression; `how` says in the error message what to write.
pub(super) fn expression(meta: &ParseNestedMeta<'_>, given: bool, how: &str) -> Result<Box<Expr>> {
    if given {
        return Err(meta.error("duplicate option"));
    }
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("write `{} = ..`, with {how}", name_of(meta))));
    }
    meta.value()?.parse()
}

/// `needs = sampling`, or `needs(sampling, roots)`.
pub(super) fn needs(noun: &str, meta: &ParseNestedMeta<'_>, needs: &mut Vec<Ident>) -> Result<()> {
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

/// The variant of `TaskMode` with this name in the option `task`.
pub(super) fn task(name: &Ident) -> Result<Ident> {
    let variant = match name.to_string().as_str() {
        "optional" => "Optional",
        "required" => "Required",
        _ => return Err(Error::new(name.span(), "write `task = optional` or `task = required`")),
    };
    Ok(Ident::new(variant, name.span()))
}

/// The variant of `RequiredClientCapability` with this name in the option `needs`.
fn need(noun: &str, name: &Ident) -> Result<Ident> {
    let variant = match name.to_string().as_str() {
        "elicitation" => "Elicitation",
        "elicitation_url" => "ElicitationUrl",
        "sampling" => "Sampling",
        "sampling_tools" => "SamplingTools",
        "roots" => "Roots",
        _ => {
            let known = "`elicitation`, `elicitation_url`, `sampling`, `sampling_tools` and `roots`";
            return Err(Error::new(name.span(), format!("unknown capability: a {noun} can need {known}")));
        }
    };
    Ok(Ident::new(variant, name.span()))
}

pub(super) fn flag(meta: &ParseNestedMeta<'_>, given: bool) -> Result<bool> {
    if given {
        return Err(meta.error("duplicate option"));
    }
    if !meta.input.peek(Token![=]) {
        return Ok(true);
    }
    let value = meta.value()?;
    let flag: LitBool = value.parse().map_err(|_| value.error("write `true` or `false`"))?;
    Ok(flag.value)
}

/// Parses the value of the `cancel` option. Returns true for `cancel = cooperative`, and false for `cancel = drop`.
pub(super) fn cooperative(meta: &ParseNestedMeta<'_>) -> Result<bool> {
    let how: Ident = meta.value()?.parse()?;
    match how.to_string().as_str() {
        "cooperative" => Ok(true),
        "drop" => Ok(false),
        _ => Err(Error::new(how.span(), "write `cancel = cooperative` or `cancel = drop`")),
    }
}

/// Checks that a name has the characters and the length that the MCP specification recommends.
pub(super) fn check_name(noun: &str, name: &LitStr) -> Result<()> {
    let text = name.value();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=128).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(());
    }
    let message = format!(
        "a {noun}'s name has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `_`, `-` and `.`; \
         for a display name use `title`"
    );
    Err(Error::new(name.span(), message))
}
