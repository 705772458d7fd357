//! One handler at work: the task around it, the state that the task shares with the driver, the budget for its output, and
//! how it waits for input from its client.

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
