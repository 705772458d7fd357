//! The options of the attribute `#[arg(..)]` on a parameter of a tool, prompt or resource.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, Ident, LitStr, Meta, Result, Token};

use super::parse::{name_of, text};

/// `#[arg(..)]`
#[derive(Default)]
pub(crate) struct ArgumentOptions {
    pub(crate) default: Option<ArgumentDefault>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) complete: Option<Expr>,
}

/// The default value of an argument that the client omits.
pub(crate) enum ArgumentDefault {
    /// `Default::default()`. The span is that of the option `default`.
    OfType(Span),
    /// This expression.
    Value(Box<Expr>),
}

impl ArgumentOptions {
    pub(crate) fn take_from(&mut self, attribute: &Attribute) -> Result<()> {
        if let Meta::Path(path) = &attribute.meta {
            return Err(Error::new_spanned(path, "write `#[arg(default = ..)]`, or remove `#[arg]`"));
        }
        attribute.parse_nested_meta(|meta| self.take(&meta))
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match name_of(meta).as_str() {
            "default" if self.default.is_some() => return Err(meta.error("duplicate option")),
            "default" if meta.input.peek(Token![=]) => {
                self.default = Some(ArgumentDefault::Value(meta.value()?.parse()?));
            }
            "default" => {
                let span = meta.path.get_ident().map_or_else(Span::call_site, Ident::span);
                self.default = Some(ArgumentDefault::OfType(span));
            }
            "rename" => self.rename = Some(text(meta, self.rename.is_some())?),
            "description" => self.description = Some(text(meta, self.description.is_some())?),
            "complete" if self.complete.is_some() => return Err(meta.error("duplicate option")),
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
