//! The options in `#[server(..)]`, `#[tool(..)]`, `#[prompt(..)]`, `#[resource(..)]` and `#[arg(..)]`.

mod argument;
mod parse;
mod prompt;
mod resource;
mod server;
mod tool;

use syn::meta::ParseNestedMeta;
use syn::{LitStr, Result};

pub(crate) use argument::{ArgumentDefault, ArgumentOptions};
use parse::{check_name, name_of, text};
pub(crate) use prompt::PromptMacroOptions;
pub(crate) use resource::ResourceMacroOptions;
pub(crate) use server::ServerMacroOptions;
pub(crate) use tool::ToolMacroOptions;

/// The options that tools, prompts and resources have in common.
#[derive(Default)]
pub(crate) struct CommonMacroOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) icons: Vec<LitStr>,
}

impl CommonMacroOptions {
    /// Parses a macro option if tools, prompts and resources have it in common, and returns false otherwise.
    fn take(&mut self, noun: &str, meta: &ParseNestedMeta<'_>) -> Result<bool> {
        match name_of(meta).as_str() {
            "name" => {
                let name = text(meta, self.name.is_some())?;
                // A resource is identified by its URI, so its name is not restricted.
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
