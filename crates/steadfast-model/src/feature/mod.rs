//! The features of the protocol, such as tools and sampling: one module for each, with its messages and values.

pub(crate) mod completion;
pub(crate) mod content;
pub(crate) mod elicit;
pub(crate) mod form;
pub(crate) mod logging;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod roots;
pub(crate) mod sampling;
pub(crate) mod task;
pub(crate) mod template;
pub(crate) mod tool;
