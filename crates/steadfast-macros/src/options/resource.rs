//! The URI and the options of `#[resource("..", ..)]`.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, Ident, LitStr, Result, Token};

use super::CommonMacroOptions;
use super::parse::{cooperative, expression, name_of, needs, text};
use crate::uri::ResourceUriLiteral;

/// `#[resource("..", ..)]`
pub(crate) struct ResourceMacroOptions {
    pub(crate) uri: ResourceUriLiteral,
    pub(crate) common: CommonMacroOptions,
    pub(crate) mime_type: Option<LitStr>,
    pub(crate) size: Option<Box<Expr>>,
    pub(crate) annotations: Option<Box<Expr>>,
    pub(crate) cache: Option<Box<Expr>>,
    pub(crate) cooperative: bool,
    /// Variants of `RequiredClientCapability`.
    pub(crate) needs: Vec<Ident>,
}

impl ResourceMacroOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let first = |input: ParseStream<'_>| {
            let missing = "the URI is missing: write `#[resource(\"weather://{city}/now\")]`";
            let uri: LitStr = input.parse().map_err(|error| Error::new(error.span(), missing))?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            Ok((uri, input.parse::<TokenStream>()?))
        };
        let (uri, rest) = first.parse2(tokens)?;
        let uri = ResourceUriLiteral::parse(uri)?;
        let mut options = Self {
            uri,
            common: CommonMacroOptions::default(),
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
            let message = "`size` is only for a fixed URI, not for a template: remove it";
            return Err(Error::new_spanned(size, message));
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.common.take("resource", meta)? {
            return Ok(());
        }
        match name_of(meta).as_str() {
            "mime_type" => self.mime_type = Some(text(meta, self.mime_type.is_some())?),
            "size" => self.size = Some(expression(meta, self.size.is_some(), "the size of the resource in bytes")?),
            "annotations" => {
                let how = "`Annotations::new().with_priority(1.0)`";
                self.annotations = Some(expression(meta, self.annotations.is_some(), how)?);
            }
            "cache" => {
                let how = "`CacheHints::new(60_000, CacheScope::Public)`";
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
