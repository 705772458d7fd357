//! The options of the attribute macro `#[server(..)]`, which turns an `impl` block into a server.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token, parenthesized};

use super::parse::{flag, name_of, text};

/// `#[server(..)]`
#[derive(Default)]
pub(crate) struct ServerMacroOptions {
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

impl ServerMacroOptions {
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
            let message = "a part has no options of its own: move this to the main block, which has `parts(..)`";
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
