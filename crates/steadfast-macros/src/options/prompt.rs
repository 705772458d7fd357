//! The options of the attribute macro `#[prompt(..)]`, which turns a function into a prompt.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Ident, Result};

use super::CommonMacroOptions;
use super::parse::{cooperative, name_of, needs};

/// `#[prompt(..)]`
#[derive(Default)]
pub(crate) struct PromptMacroOptions {
    pub(crate) common: CommonMacroOptions,
    pub(crate) cooperative: bool,
    /// Variants of `RequiredClientCapability`.
    pub(crate) needs: Vec<Ident>,
}

impl PromptMacroOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.common.take("prompt", meta)? {
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
