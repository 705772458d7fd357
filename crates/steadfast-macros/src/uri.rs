//! The URI of a `#[resource]`, and its variables.
//!
//! The macro parses only as much of a URI template (RFC 6570) as is needed to compare its variables with the parameters of the
//! function. The server parses the whole URI template.

use syn::{Error, LitStr, Result};

/// The operators that an expression of a URI template may begin with.
const OPERATORS: &[char] = &['+', '#', '.', '/', ';', '?', '&'];

/// A URI or a URI template.
pub(crate) struct ResourceUriLiteral {
    pub(crate) text: LitStr,
    /// The variables of the URI template; empty if the URI is fixed.
    pub(crate) variables: Vec<String>,
}

impl ResourceUriLiteral {
    pub(crate) fn parse(text: LitStr) -> Result<Self> {
        let value = text.value();
        let error = |message: String| Err(Error::new(text.span(), message));
        if !has_scheme(&value) {
            return error(format!("a URI begins with a scheme: `notes://{}`", value.trim_start_matches('/')));
        }
        let mut variables = Vec::new();
        let mut rest = value.as_str();
        while let Some(brace) = rest.find(['{', '}']) {
            let (_, from) = rest.split_at(brace);
            let Some((expression, after)) = from.strip_prefix('{').and_then(|inside| inside.split_once('}')) else {
                return error("unmatched brace: a variable is written `{name}`".to_owned());
            };
            for variable in expression.strip_prefix(OPERATORS).unwrap_or(expression).split(',') {
                let name = variable.strip_suffix('*').unwrap_or(variable);
                let name = name.split_once(':').map_or(name, |(name, _length)| name);
                let fits = |character: char| character.is_ascii_alphanumeric() || "_.%".contains(character);
                if name.is_empty() || !name.chars().all(fits) {
                    let expression = format!("`{{{expression}}}`");
                    return error(format!("{expression} is not a variable: write `{{name}}`, or `{{one,two}}`"));
                }
                if variables.iter().any(|known| known == name) {
                    return error(format!("the variable `{name}` occurs twice"));
                }
                variables.push(name.to_owned());
            }
            rest = after;
        }
        Ok(Self { text, variables })
    }

    /// The variables of the URI in braces, for error messages.
    pub(crate) fn list_variables(&self) -> String {
        let braced: Vec<String> = self.variables.iter().map(|name| format!("`{{{name}}}`")).collect();
        braced.join(", ")
    }
}

/// Whether the URI of a `#[resource]` begins with a scheme. A URI template may have the scheme in its first variable.
fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return uri.starts_with('{') };
    let fits = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
    scheme.starts_with('{') || (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(fits))
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    fn read(text: &str) -> std::result::Result<Vec<String>, String> {
        let uri = ResourceUriLiteral::parse(LitStr::new(text, Span::call_site()));
        uri.map(|uri| uri.variables).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_found_in_every_kind_of_expression() {
        let uri = "x://{a}/{+b}{/c,d*}{?e:3,f.g}{&h}{#i}";
        assert_eq!(read(uri).unwrap(), ["a", "b", "c", "d", "e", "f.g", "h", "i"]);
        assert_eq!(read("file:///etc/hosts").unwrap(), [""; 0]);
        assert_eq!(read("{+any}").unwrap(), ["any"]);
    }

    #[test]
    fn mistakes_are_explained() {
        for (uri, words) in [
            ("/etc/hosts", "`notes://etc/hosts`"),
            ("x://{a", "unmatched brace"),
            ("x://a}", "unmatched brace"),
            ("x://{}", "`{}` is not a variable"),
            ("x://{a b}", "`{a b}` is not a variable"),
            ("x://{a}/{a}", "`a` occurs twice"),
        ] {
            assert!(read(uri).unwrap_err().contains(words), "{uri}: {:?}", read(uri));
        }
    }
}
