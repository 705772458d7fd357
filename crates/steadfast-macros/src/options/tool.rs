//! The options of the attribute macro `#[tool(..)]`, which turns a function into a tool.

use proc_macro2::TokenStream;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{Error, Expr, Ident, Result};

use super::CommonMacroOptions;
use super::parse::{cooperative, expression, flag, name_of, needs, task};

/// `#[tool(..)]`
#[derive(Default)]
pub(crate) struct ToolMacroOptions {
    pub(crate) common: CommonMacroOptions,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) cooperative: bool,
    /// Variants of `RequiredClientCapability`.
    pub(crate) needs: Vec<Ident>,
    /// The variant of `TaskMode` that the option `task` of `#[tool]` selects.
    pub(crate) task: Option<Ident>,
    /// The function that requests input from the client before a tool call becomes an MCP task.
    pub(crate) ask_first: Option<Box<Expr>>,
}

impl ToolMacroOptions {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(tokens)?;
        if let (Some(ask_first), None) = (&options.ask_first, &options.task) {
            let message = "`ask_first` applies only to tasks: add `task = optional` or `task = required`";
            return Err(Error::new_spanned(ask_first, message));
        }
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.common.take("tool", meta)? {
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
