//! The handlers of both sides.

use std::sync::Arc;

use serde_json::Value;
use steadfast_proto::connection::Request;

use super::{HANDLER_PLAN, QueuedEvent, World};
use crate::endpoint::Reply;
use crate::observation::Execution;
use crate::observation::ledger::Side;
use crate::pair::party::Handler;
use crate::pair::workload::{HandlerStep, Kind, WhenStopped};

impl World<'_> {
    pub(super) fn start(&mut self, side: Side, execution: Execution, request: &Request) {
        let params: Value = serde_json::from_str(request.params.text()).unwrap_or_default();
        let plan = params[HANDLER_PLAN].as_u64().and_then(|number| self.plans.get(usize::try_from(number).ok()?));
        let plan = Arc::clone(plan.unwrap_or(&self.by_default));
        let first = plan.steps.first().map(|(after, _)| *after);
        self.party(side).handlers.push(Handler { plan, next: 0, progress: 0, ended: false });
        if let Some(after) = first {
            self.queue_up(self.now + after, QueuedEvent::HandlerStep(side, execution));
        }
    }

    pub(super) fn stop(&mut self, side: Side, execution: Execution) {
        let Some(handler) = self.handler(side, execution) else { return };
        let after = match handler.plan.when_stopped {
            WhenStopped::End(after) | WhenStopped::RespondThenEnd(after) => after,
            WhenStopped::GoOn => return,
        };
        self.queue_up(self.now + after, QueuedEvent::WhenStopped(side, execution));
    }

    pub(super) fn stop_at_last(&mut self, side: Side, execution: Execution) {
        let Some(handler) = self.handler(side, execution).filter(|handler| !handler.ended) else { return };
        handler.ended = true;
        let responds = matches!(handler.plan.when_stopped, WhenStopped::RespondThenEnd(_));
        let (party, _, _, trace) = self.ends(side);
        if responds {
            party.endpoint.respond(trace, execution, Reply::Result { padding: 0 });
        }
        party.endpoint.end_execution(trace, execution);
        self.follow_up(side);
    }

    fn handler(&mut self, side: Side, execution: Execution) -> Option<&mut Handler> {
        self.party(side).handlers.get_mut(usize::try_from(execution).ok()?)
    }

    pub(super) fn run_handler_step(&mut self, side: Side, execution: Execution) {
        let Some(handler) = self.handler(side, execution).filter(|handler| !handler.ended) else { return };
        let Some((_, step)) = handler.plan.steps.get(handler.next).copied() else { return };
        handler.next += 1;
        handler.ended = step == HandlerStep::End;
        let next = handler.plan.steps.get(handler.next).map(|(after, _)| *after);
        handler.progress += 1;
        let progress = f64::from(handler.progress);
        if let Some(after) = next {
            self.queue_up(self.now + after, QueuedEvent::HandlerStep(side, execution));
        }
        let call = matches!(step, HandlerStep::Call { .. }).then(|| self.request(side, Kind::Handled, None, None));
        let (party, _, _, trace) = self.ends(side);
        match step {
            HandlerStep::Progress => party.endpoint.progress(trace, execution, progress),
            HandlerStep::Log => party.endpoint.log(trace, execution),
            HandlerStep::Respond(reply) => party.endpoint.respond(trace, execution, reply),
            HandlerStep::End => party.endpoint.end_execution(trace, execution),
            HandlerStep::Call { give_up } => {
                if let Some(call) = call {
                    let (number, taken) = party.endpoint.call(trace, call, Some(execution));
                    if let Some(after) = give_up.filter(|_| taken) {
                        self.queue_up(self.now + after, QueuedEvent::GiveUp(side, number));
                    }
                }
            }
        }
        self.follow_up(side);
    }
}
