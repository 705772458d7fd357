//! Tasks: what a call becomes, and the status of it in each response.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{OpenRequest, Server, ServerOutput, inquiry, refusal, result};
use crate::client::checks::tasks as checks;
use crate::client::journal::ResponseKind;
use crate::client::script::{TaskPlan, TaskStep};
use crate::observation::json::Json;
use crate::observation::message::Id;

/// One task.
pub(super) struct Task {
    tag: u64,
    plan: TaskPlan,
    /// How often it was asked for.
    polls: usize,
    /// What it asks for now, if that was not answered.
    question: Option<String>,
    cancelled: bool,
}

impl Server {
    /// Makes a call a task. Returns what is answered.
    pub(super) fn begin_task(&self, plan: TaskPlan, busy: &OpenRequest) -> Value {
        let name = format!("t{}.{}", busy.tag, self.number());
        checks::at_task(&mut self.journal.facts(), &busy.key, busy.tag, &name);
        let task = Task { tag: busy.tag, plan, polls: 0, question: None, cancelled: false };
        self.state().tasks.insert(name.clone(), task);
        shown(&name, "task", "working", plan.pace)
    }

    /// Says how a task is doing.
    pub(super) fn get_task(&self, link: usize, id: &Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let (name, key) = (params["taskId"].as_str().unwrap_or_default(), self.journal.key(link, id));
        let number = self.number();
        let mut state = self.state();
        let Some(task) = state.tasks.get_mut(name) else { return output.tell(&refusal(id, -32602), true) };
        let turn = task.turn();
        let (pace, tag) = (task.plan.pace, task.tag);
        if let TaskStep::Asks(_) | TaskStep::AsksAnew = turn {
            let kept = task.question.take().filter(|_| turn != TaskStep::AsksAnew);
            let question = kept.unwrap_or_else(|| format!("k{number}"));
            task.question = Some(question);
        }
        let question = task.question.clone().unwrap_or_default();
        drop(state);
        let with = |status: &str, member: &str, value: Value| {
            let mut shown = shown(name, "complete", status, pace);
            shown[member] = value;
            result(id, &shown)
        };
        let completed =
            || with("completed", "result", json!({ "content": [{ "type": "text", "text": format!("tag:{tag};") }] }));
        let (said, message) = match turn {
            TaskStep::Works => (ResponseKind::TaskWorks, result(id, &shown(name, "complete", "working", pace))),
            TaskStep::Asks(asked) => {
                checks::at_asking(&mut self.journal.facts(), name, &question);
                (ResponseKind::AskBack, with("input_required", "inputRequests", inquiry(asked, &question)))
            }
            TaskStep::AsksAnew => {
                checks::at_asking(&mut self.journal.facts(), name, &question);
                let asked = inquiry(crate::client::script::Question::Roots, &question);
                (ResponseKind::AskBack, with("input_required", "inputRequests", asked))
            }
            TaskStep::Renamed => (ResponseKind::Unreadable, result(id, &shown("another", "complete", "working", pace))),
            TaskStep::Vanished => (ResponseKind::Error, refusal(id, -32602)),
            TaskStep::WrongShape => (ResponseKind::Unreadable, result(id, &json!({ "taskId": 5 }))),
            TaskStep::Silent => return,
            TaskStep::Twice | TaskStep::Completed => (ResponseKind::TaskCompleted, completed()),
            TaskStep::Empty => (ResponseKind::TaskEmpty, result(id, &shown(name, "complete", "completed", pace))),
            TaskStep::Failed => {
                (ResponseKind::TaskFailed, with("failed", "error", json!({ "code": -32603, "message": "no" })))
            }
            TaskStep::Cancelled => {
                (ResponseKind::TaskCancelled, result(id, &shown(name, "complete", "cancelled", pace)))
            }
            TaskStep::Dies => return output.die(),
        };
        let receipt = output.say(&message, true);
        self.journal.note("<- task", tag, format!("{turn:?}").as_bytes());
        self.journal.answered(&key, receipt, said);
        if turn == TaskStep::Twice {
            let second = output.say(&result(id, &shown(name, "complete", "cancelled", pace)), true);
            self.journal.answered(&key, second, ResponseKind::TaskCancelled);
        }
    }

    /// Takes what a task asked for.
    pub(super) fn update_task(&self, link: usize, id: &Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let key = self.journal.key(link, id);
        checks::at_update(&mut self.journal.facts(), params);
        // A server may show a question for a while after it was answered.
        let slow = self.draw(|random| random.chance(30));
        let name = params["taskId"].as_str().unwrap_or_default();
        if let Some(task) = self.state().tasks.get_mut(name).filter(|_| !slow) {
            task.question = None;
            task.polls += 1;
        }
        let (said, message) = match self.draw(|random| random.below(100)) {
            0..5 => (ResponseKind::Error, refusal(id, -32603)),
            5..8 => return,
            _ => (ResponseKind::TaskWorks, result(id, &json!({ "resultType": "complete" }))),
        };
        let receipt = output.say(&message, true);
        self.journal.answered(&key, receipt, said);
    }

    /// Gives a task up, and mostly says so.
    pub(super) fn cancel_task(&self, link: usize, id: &Id, params: &Json<'_>, output: &Arc<dyn ServerOutput>) {
        let (name, key) = (params["taskId"].as_str().unwrap_or_default(), self.journal.key(link, id));
        if let Some(task) = self.state().tasks.get_mut(name) {
            task.cancelled = true;
        }
        let (said, message) = match self.draw(|random| random.below(100)) {
            0..5 => (ResponseKind::Error, refusal(id, -32603)),
            5..15 => return,
            _ => (ResponseKind::Result, result(id, &json!({ "resultType": "complete" }))),
        };
        let receipt = output.say(&message, true);
        self.journal.answered(&key, receipt, said);
    }
}

impl Task {
    /// The status in this response.
    fn turn(&mut self) -> TaskStep {
        let [.., last] = self.plan.steps;
        let turn = self.plan.steps.get(self.polls).copied().unwrap_or(last);
        // A question stays until it is answered.
        if !matches!(turn, TaskStep::Asks(_)) {
            self.polls += 1;
        }
        if self.cancelled { TaskStep::Cancelled } else { turn }
    }
}

fn shown(name: &str, kind: &str, status: &str, pace: Option<u64>) -> Value {
    let mut task = json!({ "resultType": kind, "taskId": name, "status": status, "ttlMs": null,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z" });
    if let Some(pace) = pace {
        task["pollIntervalMs"] = pace.into();
    }
    task
}
