//! A running handler: the task around the handler, the state that the task shares with the driver, the budget for the
//! handler's output, and how the handler waits for input from its client.

pub(crate) mod async_handler;
pub(crate) mod catch_panic;
pub(crate) mod execution;
pub(crate) mod input_rounds;
pub(crate) mod launch;
pub(crate) mod output_budget;
pub(crate) mod prepared;
mod respond;
pub(crate) mod suspend;
mod task;
