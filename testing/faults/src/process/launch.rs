//! How a check starts the command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::process::standard_error::StderrMode;

/// The command line, the environment and what the client does with the two outputs.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    pub(crate) reading: bool,
    pub(crate) errors: StderrMode,
}

impl Launch {
    /// `serve` with its defaults, both outputs read.
    pub(crate) fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arguments: vec!["serve".to_owned()],
            environment: Vec::new(),
            reading: true,
            errors: StderrMode::Drain,
        }
    }

    pub(crate) fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// The file to which `slow_cleanup` appends.
    pub(crate) fn cleanup_log(self, file: &Path) -> Self {
        self.variable("CLEANUP_LOG", file)
    }

    pub(crate) fn errors(mut self, treatment: StderrMode) -> Self {
        self.errors = treatment;
        self
    }
}
