//! The tools of the simulated server: each does what the script says for its call, and writes down what it sees.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use steadfast::{Context, JsonObject, LoggingLevel, ProgressReport, ServerTool};

use super::journal::Journal;
use super::script::{Call, Kind, Op};
use crate::executor::Executor;
use crate::observation::lifetimes::{Lifetime, LifetimeKind};

/// In the text of every panic: it must never be seen outside.
pub(super) const SECRET: &str = "a secret of the handler";

/// What all handlers of a run share.
pub(super) struct HandlerContext {
    pub(super) executor: Executor,
    pub(super) journal: Arc<Journal>,
}

/// The tools, one for each kind of handler.
pub(super) fn tools(context: &Arc<HandlerContext>) -> [ServerTool; 3] {
    let shared = Arc::clone(context);
    let run = move |arguments: JsonObject, ctx: Context| {
        let context = Arc::clone(&shared);
        async move {
            let Some(call) = context.call(&arguments) else { return "no such call".to_owned() };
            context.run_call(call, ctx).await
        }
    };
    let shared = Arc::clone(context);
    let block = move |arguments: JsonObject, ctx: Context| match shared.call(&arguments) {
        Some(call) => shared.block(&call, &ctx),
        None => "no such call".to_owned(),
    };
    [
        ServerTool::new("Async").handler(run.clone()),
        ServerTool::new("Cooperative").cooperative().handler(run),
        ServerTool::new("Blocking").blocking_handler(block),
    ]
}

impl Kind {
    /// The name of the tool with handlers of this kind.
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Async => "Async",
            Self::Cooperative => "Cooperative",
            Self::Blocking => "Blocking",
        }
    }
}

/// One run of a handler.
struct Running<'a> {
    context: &'a Arc<HandlerContext>,
    call: &'a Call,
    ctx: &'a Context,
    /// Of the runs of this call, in 2026-07-28 one for each round.
    number: u64,
    progress: f64,
    logs: u64,
}

impl HandlerContext {
    fn call(&self, arguments: &JsonObject) -> Option<Call> {
        self.journal.call(arguments.get("tag")?.as_u64()?)
    }

    async fn run_call(self: Arc<Self>, call: Call, ctx: Context) -> String {
        let (life, number) = self.journal.begin(call.tag, LifetimeKind::Handler);
        let mut first_poll = self.executor.steps();
        let mut running = Running { context: &self, call: &call, ctx: &ctx, number, progress: 0.0, logs: 0 };
        for op in &call.plan {
            self.executor.block_in_first_poll(call.tag, &mut first_poll);
            match *op {
                Op::Sleep(duration) => self.executor.sleep(duration).await,
                Op::Yield => yield_once().await,
                Op::Elicit => drop(ctx.elicit::<bool>("Really?").outcome().await),
                Op::Sample => drop(ctx.sample("What is it?").await),
                Op::Roots => drop(ctx.roots().await),
                Op::Shield(duration) => ctx.shield(self.shielded(call.tag, duration)).await,
                Op::AwaitCancel => drop(ctx.cancelled().await),
                Op::Never => std::future::pending().await,
                other => running.report(other),
            }
        }
        life.done();
        running.answer()
    }

    fn block(self: &Arc<Self>, call: &Call, ctx: &Context) -> String {
        let (life, number) = self.journal.begin(call.tag, LifetimeKind::Thread);
        let mut running = Running { context: self, call, ctx, number, progress: 0.0, logs: 0 };
        for op in &call.plan {
            match *op {
                // A thread that blocks "for ever" does so past every deadline.
                Op::Never => self.executor.block(Duration::from_secs(9)),
                Op::Sleep(duration) => self.executor.block(duration),
                Op::Shield(duration) => {
                    // Begun and left alone.
                    let mut shield = pin!(ctx.shield(self.shielded(call.tag, duration)));
                    let _ = shield.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
                }
                other => running.report(other),
            }
            if call.size == 10 && ctx.is_cancelled() {
                break;
            }
        }
        life.done();
        running.answer()
    }

    fn shielded(self: &Arc<Self>, tag: u64, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let context = Arc::clone(self);
        let (life, _) = self.journal.begin(tag, LifetimeKind::Shield);
        async move {
            context.executor.sleep(duration).await;
            life.done();
        }
    }

    fn cleanup(
        self: &Arc<Self>,
        life: Lifetime,
        duration: Option<Duration>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let context = Arc::clone(self);
        async move {
            life.running();
            match duration {
                Some(duration) => context.executor.sleep(duration).await,
                None => std::future::pending().await,
            }
            life.done();
        }
    }
}

impl Running<'_> {
    /// What is the same in every kind of handler.
    fn report(&mut self, op: Op) {
        match op {
            Op::Progress(count) => {
                for _ in 0..count {
                    self.progress += 1.0;
                    self.ctx.report(ProgressReport::new(self.progress));
                }
            }
            Op::Log(count) => {
                for _ in 0..count {
                    self.logs += 1;
                    let marker = (self.call.tag * 10 + self.number) * 1_000 + self.logs;
                    self.ctx.log(LoggingLevel::Error, serde_json::json!({ "marker": marker }));
                }
            }
            Op::OnCancel(duration) => {
                let (life, _) = self.context.journal.begin(self.call.tag, LifetimeKind::Cleanup);
                self.ctx.on_cancel(self.context.cleanup(life, duration));
            }
            Op::Release => self.ctx.release_connection(),
            Op::Change(change) => {
                self.context.journal.change(change);
                self.ctx.server().into_iter().for_each(|server| change.make(server));
            }
            Op::Panic => panic!("{SECRET}"),
            _ => {}
        }
    }

    /// Says which run it is of, and how many log messages went before.
    fn answer(&self) -> String {
        format!("tag:{};{};{};{}", self.call.tag, self.number, self.logs, "x".repeat(self.call.size))
    }
}

async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
