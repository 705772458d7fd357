//! Standard input, output and error, signals, and processes that share them.

pub(super) mod child_reads_stdin;
pub(super) mod input_closes;
pub(super) mod output_closes;
pub(super) mod print;
pub(super) mod signals;
pub(super) mod unread;
pub(super) mod unread_stderr;
