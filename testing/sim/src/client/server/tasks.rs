//! Tasks: what a call becomes, and what is said of it each time that it is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Busy, Server, Voice, inquiry, refusal, result};
use crate::client::checks::tasks as checks;
use crate::client::journal::Said;
use crate::client::script::{Errand, Turn};
use crate::observation::message::Id;

/// One task.
pub(super) struct Task {
    tag: u64,
    errand: Errand,
    /// How often it was asked for.
    polls: usize,
    /// What it asks for now, if that was not answered.
    question: Option<String>,
    cancelled: bool,
}

impl Server {
    /// Makes a call a task. Returns what is answered.
    pub(super) fn begin_task(&self, errand: Errand, busy: &Busy) -> Value {
        let name = format!("t{}.{}", busy.tag, self.number());
        checks::at_task(&mut self.journal.facts(), &busy.key, busy.tag, &name);
        let task = Task { tag: busy.tag, errand, polls: 0, question: None, cancelled: false };
        self.state().tasks.insert(name.clone(), task);
        shown(&name, "task", "working", errand.pace)
    }

    /// Says how a task is doing.
    pub(super) fn get_task(&self, link: usize, id: &Id, params: &Value, voice: &Arc<dyn Voice>) {
        let (name, key) = (params["taskId"].as_str().unwrap_or_default(), self.journal.key(link, id));
        let number = self.number();
        let mut state = self.state();
        let Some(task) = state.tasks.get_mut(name) else { return voice.tell(&refusal(id, -32602), true) };
        let turn = task.turn();
        let (pace, tag) = (task.errand.pace, task.tag);
        if let Turn::Asks(_) | Turn::AsksAnew = turn {
            let kept = task.question.take().filter(|_| turn != Turn::AsksAnew);
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
            Turn::Works => (Said::TaskWorks, result(id, &shown(name, "complete", "working", pace))),
            Turn::Asks(asked) => {
                checks::at_asking(&mut self.journal.facts(), name, &question);
                (Said::AskBack, with("input_required", "inputRequests", inquiry(asked, &question)))
            }
            Turn::AsksAnew => {
                checks::at_asking(&mut self.journal.facts(), name, &question);
                let asked = inquiry(crate::client::script::Question::Roots, &question);
                (Said::AskBack, with("input_required", "inputRequests", asked))
            }
            Turn::Renamed => (Said::Unreadable, result(id, &shown("another", "complete", "working", pace))),
            Turn::Vanished => (Said::Error, refusal(id, -32602)),
            Turn::WrongShape => (Said::Unreadable, result(id, &json!({ "taskId": 5 }))),
            Turn::Silent => return,
            Turn::Twice | Turn::Completed => (Said::TaskCompleted, completed()),
            Turn::Empty => (Said::TaskEmpty, result(id, &shown(name, "complete", "completed", pace))),
            Turn::Failed => (Said::TaskFailed, with("failed", "error", json!({ "code": -32603, "message": "no" }))),
            Turn::Cancelled => (Said::TaskCancelled, result(id, &shown(name, "complete", "cancelled", pace))),
            Turn::Dies => return voice.die(),
        };
        let receipt = voice.say(&message, true);
        self.journal.note("<- task", tag, format!("{turn:?}").as_bytes());
        self.journal.answered(&key, receipt, said);
        if turn == Turn::Twice {
            let second = voice.say(&result(id, &shown(name, "complete", "cancelled", pace)), true);
            self.journal.answered(&key, second, Said::TaskCancelled);
        }
    }

    /// Takes what a task asked for.
    pub(super) fn update_task(&self, link: usize, id: &Id, params: &Value, voice: &Arc<dyn Voice>) {
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
            0..5 => (Said::Error, refusal(id, -32603)),
            5..8 => return,
            _ => (Said::TaskWorks, result(id, &json!({ "resultType": "complete" }))),
        };
        let receipt = voice.say(&message, true);
        self.journal.answered(&key, receipt, said);
    }

    /// Gives a task up, and mostly says so.
    pub(super) fn cancel_task(&self, link: usize, id: &Id, params: &Value, voice: &Arc<dyn Voice>) {
        let (name, key) = (params["taskId"].as_str().unwrap_or_default(), self.journal.key(link, id));
        if let Some(task) = self.state().tasks.get_mut(name) {
            task.cancelled = true;
        }
        let (said, message) = match self.draw(|random| random.below(100)) {
            0..5 => (Said::Error, refusal(id, -32603)),
            5..15 => return,
            _ => (Said::Result, result(id, &json!({ "resultType": "complete" }))),
        };
        let receipt = voice.say(&message, true);
        self.journal.answered(&key, receipt, said);
    }
}

impl Task {
    /// What is said this time.
    fn turn(&mut self) -> Turn {
        let [.., last] = self.errand.steps;
        let turn = self.errand.steps.get(self.polls).copied().unwrap_or(last);
        // A question stays until it is answered.
        if !matches!(turn, Turn::Asks(_)) {
            self.polls += 1;
        }
        if self.cancelled { Turn::Cancelled } else { turn }
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
