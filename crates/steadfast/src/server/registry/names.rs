//! Checks of the names that the author of a server chose.

use steadfast_model::error::excerpt;
use steadfast_model::meta::{check_extension, check_key};
use steadfast_model::{JsonObject, Meta, TASKS_EXTENSION};

/// Returns what is wrong with the keys of a `_meta`, if anything.
pub(crate) fn problem_of_meta(meta: Option<&Meta>) -> Option<String> {
    let (key, bad) = meta?.keys().find_map(|key| Some((key, check_key(key).err()?)))?;
    Some(format!("the `_meta` of the definition has the key `{}`: {bad}", excerpt(key)))
}

/// Whether the specification recommends this form of tool name. Tools with other names work in this library, and with
/// most clients.
pub(crate) fn is_recommended_tool_name(name: &str) -> bool {
    name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Returns what is wrong with the extensions that a server declares, if anything.
pub(crate) fn problem_of_extensions(extensions: &JsonObject) -> Option<String> {
    if extensions.contains_key(TASKS_EXTENSION) {
        return Some(format!("`{TASKS_EXTENSION}` is declared by tools that run as MCP tasks, and by nothing else"));
    }
    let (name, bad) = extensions.keys().find_map(|name| Some((name, check_extension(name).err()?)))?;
    Some(format!("`{}` cannot be the name of an extension: {bad}", excerpt(name)))
}
