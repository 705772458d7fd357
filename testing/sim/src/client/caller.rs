//! The program: it opens the client, does the steps of the script with it, and records the results.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use steadfast::client::{Canceller, ConnectBuilder, ReconnectPolicy};
use steadfast::{CallToolResult, Client, ElicitParams, ElicitResult, Error, ListRootsResult};

use super::journal::{CallResult, Journal};
use super::script::{Action, Call, Opening, ProgressMode, Script};
use super::server::{Server, ServerOutput};
use crate::executor::{Executor, TaskId};
use crate::script::rng::Random;

/// Longer than any call lasts.
const LONG: Duration = Duration::from_secs(40);

/// How long the server may take to say what it speaks.
const OPENING: Duration = Duration::from_secs(2);

pub(super) struct Caller {
    pub(super) executor: Executor,
    pub(super) journal: Arc<Journal>,
    pub(super) server: Arc<Server>,
    /// Where the server sends unsolicited messages.
    pub(super) output: Arc<dyn ServerOutput>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    client: Option<Client>,
    calls: Vec<(u64, TaskId, Canceller)>,
    listeners: Vec<TaskId>,
}

impl Caller {
    pub(super) fn new(
        executor: Executor,
        journal: Arc<Journal>,
        server: Arc<Server>,
        output: Arc<dyn ServerOutput>,
    ) -> Self {
        Self { executor, journal, server, output, state: Mutex::default() }
    }

    /// With what is the same over every transport.
    pub(super) fn prepare(&self, connecting: ConnectBuilder, script: &Script) -> ConnectBuilder {
        let (executor, random) = (self.executor.clone(), Mutex::new(Random::new(script.seed, 32)));
        let connecting = if script.tasks { connecting.tasks() } else { connecting };
        connecting
            .negotiation(script.era)
            .limits(script.limits.clone())
            .reconnect(if script.returns { ReconnectPolicy::default() } else { ReconnectPolicy::never() })
            .opening_timeout(OPENING)
            .runtime(Arc::new(executor.clone()))
            .on_roots(move |_| {
                let nap = random.lock().unwrap_or_else(PoisonError::into_inner).delay(Duration::from_secs(1));
                let sleep = executor.sleep(nap);
                async move {
                    sleep.await;
                    Ok(ListRootsResult::default())
                }
            })
            .on_elicit(|asked, _| async move {
                match asked {
                    ElicitParams::Form(form) if form.message == "hang" => std::future::pending().await,
                    ElicitParams::Form(form) if form.message == "fail" => Err(Error::internal("no")),
                    _ => Ok(ElicitResult::decline()),
                }
            })
    }

    pub(super) async fn perform(self: Arc<Self>, connecting: ConnectBuilder, script: Script) {
        if let Some(client) = self.open(connecting, &script).await {
            self.state().client = Some(client);
            for step in script.steps {
                if step.delay > Duration::ZERO {
                    self.executor.sleep(step.delay).await;
                }
                self.run_action(step.action).await;
            }
            self.executor.sleep(LONG).await;
        }
        self.forget();
        self.executor.sleep(LONG).await;
        // Listeners keep the client alive until they are dropped.
        let listeners = std::mem::take(&mut self.state().listeners);
        for listener in listeners {
            self.executor.cancel(listener);
        }
        // Give the checks time before the server ends.
        for _ in 0..2 {
            self.executor.sleep(LONG / 2).await;
        }
        self.output.die();
    }

    async fn open(&self, connecting: ConnectBuilder, script: &Script) -> Option<Client> {
        let mut opening = connecting.into_future();
        let mut patience = script.give_up.map(|most| self.executor.sleep(most));
        let opened = std::future::poll_fn(|cx| {
            if let Poll::Ready(opened) = opening.as_mut().poll(cx) {
                return Poll::Ready(Some(opened));
            }
            match &mut patience {
                Some(patience) => Pin::new(patience).poll(cx).map(|()| None),
                None => Poll::Pending,
            }
        })
        .await;
        drop(opening);
        let must = script.is_compatible() && script.opening == Opening::Plain;
        let Some(opened) = opened else {
            self.journal.note("given up", 0, b"");
            return None;
        };
        self.journal.opened(opened.as_ref().map(drop), must);
        opened.ok()
    }

    async fn run_action(self: &Arc<Self>, action: Action) {
        match action {
            Action::Call(call) => self.call(call),
            Action::Drop { back } => {
                let mut state = self.state();
                let place = state.calls.len().checked_sub(1 + back);
                let task = place.map(|place| state.calls.remove(place));
                drop(state);
                if let Some((_, task, _)) = task {
                    self.executor.cancel(task);
                }
            }
            Action::Cancel { back } => {
                let state = self.state();
                let call = state.calls.iter().rev().nth(back).map(|(tag, _, canceller)| (*tag, canceller.clone()));
                drop(state);
                if let Some((tag, canceller)) = call {
                    self.journal.cancelled(tag);
                    canceller.cancel();
                }
            }
            Action::Read(reading) => self.read(reading),
            Action::Listen(listening) => self.listen(&listening),
            Action::StopListening { back } => {
                let mut state = self.state();
                let place = state.listeners.len().checked_sub(1 + back);
                let listener = place.map(|place| state.listeners.remove(place));
                drop(state);
                if let Some(listener) = listener {
                    self.executor.cancel(listener);
                }
            }
            Action::Change(resource) => self.server.change(resource, &self.output),
            Action::ServerAction(say) => self.server.say(say, None, &self.output),
            Action::Pause(duration) => self.output.pause(duration),
            Action::Settle => self.executor.sleep(LONG).await,
            Action::EndOutput => self.output.end_output(),
            Action::StopReading => self.output.stop_reading(),
            Action::Die => self.output.die(),
            Action::Close => {
                let client = self.state().client.take();
                if let Some(client) = client {
                    self.journal.close();
                    client.close().await;
                    self.journal.closed();
                }
            }
            Action::Forget => self.forget(),
        }
    }

    fn forget(&self) {
        let client = self.state().client.take();
        self.journal.note("forget", 0, b"");
        drop(client);
        self.left();
    }

    /// When the last handle of the client is dropped, it has to end.
    pub(super) fn left(&self) {
        let alone = self.state().client.is_none();
        let now = self.executor.now();
        let mut facts = self.journal.facts();
        if alone && facts.left.is_none() && facts.is_idle() {
            facts.left = Some(now);
        }
    }

    fn call(self: &Arc<Self>, call: Call) {
        let Some(client) = self.client() else { return };
        let tag = call.tag;
        self.journal.began(tag, call.progress == ProgressMode::Stream);
        let mut made = client.call_tool("work", json!({ "tag": tag }));
        made = made.timeout(call.timeout).total_timeout(call.total);
        if call.idempotent {
            made = made.idempotent();
        }
        let waits = CallGuard { caller: Arc::clone(self), tag, end: None };
        let journal = Arc::clone(&self.journal);
        let (task, canceller) = if call.progress == ProgressMode::Stream {
            let (mut progress, result) = made.start_with_progress();
            self.executor.spawn_harness_task(async move {
                while let Some(step) = progress.next().await {
                    journal.progressed(tag, step.progress);
                }
                journal.progress_ended(tag);
            });
            let canceller = result.canceller();
            (self.executor.spawn_harness_task(waits.wait(result, call.polls)), canceller)
        } else {
            if call.progress == ProgressMode::Called {
                made = made.on_progress(move |progress| journal.progressed(tag, progress.progress));
            }
            let pending = made.start();
            let canceller = pending.canceller();
            (self.executor.spawn_harness_task(waits.wait(pending, call.polls)), canceller)
        };
        drop(client);
        self.state().calls.push((tag, task, canceller));
    }

    /// The client, if the program has it.
    pub(super) fn client(&self) -> Option<Client> {
        self.state().client.clone()
    }

    pub(super) fn keep_listener(&self, listener: TaskId) {
        self.state().listeners.push(listener);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says how a call ended, also if it is dropped.
struct CallGuard {
    caller: Arc<Caller>,
    tag: u64,
    end: Option<CallResult>,
}

impl CallGuard {
    /// Waits for the end of a call, and drops it when it has been polled so often.
    async fn wait(mut self, call: impl Future<Output = Result<CallToolResult, Error>>, polls: Option<u32>) {
        let (mut call, mut polled) = (Box::pin(call), 0);
        let ended = std::future::poll_fn(|cx| {
            if polls == Some(polled) {
                return Poll::Ready(None);
            }
            polled += 1;
            call.as_mut().poll(cx).map(Some)
        });
        let ended = ended.await;
        drop(call);
        self.end = ended.map(CallResult::of);
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.caller.state().calls.retain(|(tag, ..)| *tag != self.tag);
        self.caller.journal.ended(self.tag, self.end.take().unwrap_or(CallResult::Dropped));
        self.caller.left();
    }
}
