//! The tools of the simulated server: each does what the script says for its call, and writes down what it sees.

use std::panic::panic_any;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use steadfast::{Context, JsonObject, LoggingLevel, ProgressReport, ServerTool};

use super::journal::Journal;
use super::script::{Call, Kind, Op};
use crate::executor::Executor;
use crate::observation::lifetimes::{Lifetime, LifetimeKind};

/// In the text of every panic: it must never be seen on the wire.
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
            let Some(call) = context.call(&arguments, &ctx) else { return "no such call".to_owned() };
            context.run_call(call, ctx).await
        }
    };
    let shared = Arc::clone(context);
    let block = move |arguments: JsonObject, ctx: Context| match shared.call(&arguments, &ctx) {
        Some(call) => shared.block(&call, &ctx),
        None => "no such call".to_owned(),
    };
    [
        ServerTool::new("Async").handler(run.clone()),
        ServerTool::new("Cooperative").cooperative().handler(run),
        ServerTool::new("Blocking").blocking_handler(block),
    ]
}

/// What a handler answers.
fn answer(call: &Call) -> String {
    format!("tag:{};{}", call.tag, "x".repeat(call.size))
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "{SECRET} in a drop");
    }
}

impl HandlerContext {
    /// The call that the arguments name, if it was sent like that.
    fn call(&self, arguments: &JsonObject, ctx: &Context) -> Option<Call> {
        let tag = arguments.get("tag")?.as_u64()?;
        let call = self.journal.call(tag)?;
        let id = serde_json::to_string(&ctx.request_id()).ok()?;
        (call.id == id).then_some(call)
    }

    async fn run_call(self: Arc<Self>, call: Call, ctx: Context) -> String {
        let life = self.journal.begin(call.tag, LifetimeKind::Handler);
        let mut first_poll = self.executor.steps();
        let mut steps = 0.0;
        let mut kept = Vec::new();
        for op in &call.plan {
            self.executor.block_in_first_poll(call.tag, &mut first_poll);
            match *op {
                Op::Sleep(duration) => self.executor.sleep(duration).await,
                Op::Yield => yield_once().await,
                Op::Shield(duration) => ctx.shield(self.shielded(call.tag, duration)).await,
                Op::ShieldPanics => ctx.shield(async { panic!("{SECRET} in a shield") }).await,
                Op::Roots => self.roots(&call, &ctx).await,
                Op::RootsDropped => {
                    let mut asked = pin!(self.roots(&call, &ctx));
                    let mut cx = TaskContext::from_waker(Waker::noop());
                    let _ = asked.as_mut().poll(&mut cx);
                }
                Op::PanicInDrop => kept.push(PanicsInDrop),
                Op::AwaitCancel => drop(ctx.cancelled().await),
                Op::Never => std::future::pending().await,
                other => self.report(other, &call, &ctx, &mut steps),
            }
        }
        life.done();
        answer(&call)
    }

    fn block(self: &Arc<Self>, call: &Call, ctx: &Context) -> String {
        let life = self.journal.begin(call.tag, LifetimeKind::Thread);
        let mut steps = 0.0;
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
                other => self.report(other, call, ctx, &mut steps),
            }
            if call.size == 10 && ctx.is_cancelled() {
                break;
            }
        }
        life.done();
        answer(call)
    }

    /// What is the same in every kind of handler.
    fn report(self: &Arc<Self>, op: Op, call: &Call, ctx: &Context, steps: &mut f64) {
        match op {
            Op::Progress(count) => {
                for _ in 0..count {
                    *steps += 1.0;
                    ctx.report(ProgressReport::new(*steps));
                }
            }
            Op::Log(count) => {
                for _ in 0..count {
                    ctx.log(LoggingLevel::Error, serde_json::json!({ "marker": call.tag }));
                }
            }
            Op::OnCancel(duration) => {
                let life = self.journal.begin(call.tag, LifetimeKind::Cleanup);
                ctx.on_cancel(self.cleanup(life, duration, ctx.clone()));
            }
            Op::KeepContext(duration) => {
                self.executor.spawn_harness_task(Arc::clone(self).use_late(call.clone(), ctx.clone(), duration));
            }
            Op::Change(change) => {
                self.journal.change(change);
                ctx.server().into_iter().for_each(|server| change.make(server));
            }
            Op::Panic => panic!("{SECRET}"),
            Op::PanicOddly => panic_any(PanicsInDrop),
            _ => {}
        }
    }

    fn shielded(self: &Arc<Self>, tag: u64, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let context = Arc::clone(self);
        let life = self.journal.begin(tag, LifetimeKind::Shield);
        async move {
            context.executor.sleep(duration).await;
            life.done();
        }
    }

    fn cleanup(
        self: &Arc<Self>,
        life: Lifetime,
        duration: Option<Duration>,
        ctx: Context,
    ) -> impl Future<Output = ()> + Send + use<> {
        let context = Arc::clone(self);
        async move {
            life.running();
            match duration {
                Some(duration) => context.executor.sleep(duration).await,
                None => std::future::pending().await,
            }
            // What a cleanup reports goes nowhere.
            ctx.progress(1e9, "cleaning up");
            ctx.log(LoggingLevel::Error, "cleaning up");
            life.done();
        }
    }

    /// Uses a context at a moment at which its request has mostly ended.
    async fn use_late(self: Arc<Self>, call: Call, ctx: Context, duration: Duration) {
        self.executor.sleep(duration).await;
        ctx.progress(1e12, "late");
        ctx.log(LoggingLevel::Error, serde_json::json!({ "marker": call.tag }));
        let life = self.journal.begin(call.tag, LifetimeKind::Late);
        let kept = ctx.clone();
        ctx.on_cancel(async move {
            std::future::pending::<()>().await;
            drop((kept, life));
        });
        let life = self.journal.begin(call.tag, LifetimeKind::Late);
        let mut shield = pin!(ctx.shield(async move {
            std::future::pending::<()>().await;
            life.done();
        }));
        let _ = shield.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        self.roots(&call, &ctx).await;
    }

    async fn roots(&self, call: &Call, ctx: &Context) {
        let life = self.journal.begin(call.tag, LifetimeKind::Call);
        let ended = ctx.roots().await;
        self.journal.called(ended.as_ref().err().map(steadfast::Error::outcome));
        life.done();
    }
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
