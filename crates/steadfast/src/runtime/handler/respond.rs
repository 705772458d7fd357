//! How the response of a handler reaches the driver: it is sent at once, parked until the output budget has free bytes
//! again, or replaced by an error.

use std::sync::Arc;

use steadfast_model::ErrorObject;
use steadfast_proto::encode::EncodedResponse;
use steadfast_proto::mutant;

use super::catch_panic::{call_catching_panics, drop_catching_panics};
use super::execution::HandlerExecution;
use super::output_budget::OutputBudgetWaitReason;
use super::prepared::HandlerOutputEncoder;
use super::task::{HandlerStage, HandlerTask};
use crate::runtime::connection::mailbox::DriverCommand;

/// A response that waits for the output budget. The bytes of a parked response count as parked as long as this value
/// exists.
pub(super) struct OutputBudgetParkedResponse {
    pub(super) response: Option<EncodedResponse>,
    bytes: usize,
    execution: Arc<HandlerExecution>,
}

impl Drop for OutputBudgetParkedResponse {
    fn drop(&mut self) {
        self.execution.mailbox.budget().unpark(self.bytes);
    }
}

impl<E: HandlerOutputEncoder> HandlerTask<E> {
    /// Encodes what the handler returned, on the thread on which the handler ran.
    pub(super) fn respond(&mut self, output: E::Output) -> HandlerStage<E::Output> {
        let execution = &self.execution;
        let Some(encoder) = self.encoder.take().filter(|_| execution.stop_reason().is_none()) else {
            // The request was cancelled: it gets no response.
            drop_catching_panics(output);
            return HandlerStage::CleaningUp(None);
        };
        let Ok(response) = call_catching_panics(|| encoder.encode(output, execution)) else {
            return self.respond_to_panic();
        };
        self.deliver(response)
    }

    /// Sends the response of a handler to the driver, now or when the output budget has free bytes.
    pub(super) fn deliver(&mut self, response: EncodedResponse) -> HandlerStage<E::Output> {
        let execution = &self.execution;
        if execution.mailbox.budget().has_capacity_to(OutputBudgetWaitReason::Respond) {
            execution.drop_cleanups();
            return post_response(execution, response);
        }
        let bytes = response.len();
        if execution.mailbox.budget().park(bytes) {
            return HandlerStage::ResponseParked(OutputBudgetParkedResponse {
                response: Some(response),
                bytes,
                execution: Arc::clone(execution),
            });
        }
        let error =
            ErrorObject::internal("output limit reached: too many responses wait to be read, so this one was dropped");
        execution.drop_cleanups();
        post_response(execution, EncodedResponse::error(&execution.id, &error))
    }

    pub(super) fn respond_to_panic(&mut self) -> HandlerStage<E::Output> {
        if mutant!(SwallowPanic) {
            return HandlerStage::Done;
        }
        let execution = &self.execution;
        execution.drop_cleanups();
        post_response(execution, panic_response(execution))
    }
}

/// Sends the response of a handler to the driver. If no shield and no cleanup is left, the same command ends the
/// execution of the request.
pub(super) fn post_response<T>(execution: &Arc<HandlerExecution>, response: EncodedResponse) -> HandlerStage<T> {
    if !execution.try_end() {
        post(execution, DriverCommand::Respond { key: execution.key, response });
        return HandlerStage::CleaningUp(None);
    }
    post(execution, DriverCommand::RespondAndEnd { key: execution.key, response });
    HandlerStage::Done
}

pub(super) fn post(execution: &HandlerExecution, command: DriverCommand) {
    // If the connection is closed, there is nothing left to do.
    let _ = execution.mailbox.post(command);
}

/// The error response for a handler that panicked. The message of a panic may contain secrets, so the peer learns only
/// that the handler failed.
fn panic_response(execution: &HandlerExecution) -> EncodedResponse {
    let log = || tracing::error!(request = %execution.id, "handler panicked; its request gets an internal error");
    // A log subscriber that panics in its turn must not prevent the response.
    let _ = call_catching_panics(log);
    EncodedResponse::error(&execution.id, &ErrorObject::internal("the handler failed unexpectedly"))
}
