//! Prompts and completions for one revision.
