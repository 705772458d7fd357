//! One handler at work: the task around it, what it shares with the driver, its budget for output, and how it waits for
//! its client's answers.

pub(crate) mod execution;
pub(crate) mod input_rounds;
pub(crate) mod output_budget;
pub(crate) mod prepared;
pub(crate) mod suspend;
pub(crate) mod task;
