//! The course of a call: what comes after each request that is made for it.
//!
//! Most calls are one request and its answer. Others take more: the server asks back, or gives a task, or wants headers that
//! are not known yet, or is lost on the way. Whatever is waited for then, the total time and a cancellation end it at once,
//! and what is known of the call by then is in the error (law L10).

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use steadfast_model::era;
use steadfast_model::request::Request;
use steadfast_model::{AnyResult, InputRequiredResult, JsonObject, ProgressToken, Task};
use steadfast_proto::connection::CallEnd;
use steadfast_proto::{Moment, mutant};

use super::attempts::Attempts;
use super::canceller::Canceller;
use super::header_lookup::{HeaderLookup, look_up};
use super::request::InFlightRequest;
use super::rounds::Rounds;
use super::{Call, Settings};
use crate::client::Client;
use crate::client::cache::CacheTicket;
use crate::client::connection::live::LiveConnection;
use crate::client::connection::reconnecting::{LostConnection, ReconnectingConnection};
use crate::client::tasks;
use crate::client::tasks::Tasks;
use crate::client::tasks::cancel::takes_cancellations;
use crate::error::{Error, Outcome};
use crate::runtime::connection::call_result::{CallLoss, LossKind, complete, text_of};
use crate::runtime::timeout::{timeout_at, unless_stopped};
use crate::runtime::{CallOptions, PendingCall, Runtime};

/// One call, over all the requests that it takes.
pub(crate) struct CallFlow<R: Request> {
    /// Keeps the connection open while the call waits.
    client: Client,
    /// What the last request went over, and when.
    live: Arc<LiveConnection>,
    asked: Moment,
    params: R::Params,
    settings: Settings,
    token: Option<ProgressToken>,
    limits: WaitLimits,
    rounds: Rounds,
    lookup: HeaderLookup,
    attempts: Attempts,
    /// The tasks that the last request may become.
    tasks: Option<Tasks>,
    /// What the last request has to do with what the client keeps.
    ticket: Option<CacheTicket>,
    /// How long the last answer was.
    answer_bytes: usize,
}

/// What became of a request.
pub(crate) enum Step<R: Request> {
    /// That was it.
    Over(Result<R::Result, Error>),
    /// There is more to do.
    On(Next),
}

/// What there is to do.
pub(crate) enum Next {
    /// It was lost, and may be made again.
    Retry(LostConnection),
    /// The server asks back.
    Answer(InputRequiredResult),
    /// What the server wants in the headers is to be looked up.
    LookUp,
    /// It goes on as a task, which is followed.
    Follow(Pin<Box<dyn Future<Output = Result<JsonObject, Error>> + Send>>),
    /// It was lost with its server, and that is it: how that ended is worth a moment.
    AwaitExitReason(Error),
}

/// What came of that.
enum Continuation<R: Request> {
    /// Another request.
    Request(InFlightRequest<R>),
    /// The result of a task.
    Result(Value),
}

impl<R: Request> CallFlow<R> {
    /// The course of a call that is about to be made.
    pub(crate) fn new(call: Call<R>, params: R::Params, token: Option<ProgressToken>) -> Self {
        let Call { client, settings, .. } = call;
        let inner = &client.inner;
        let trusted = inner.trusts_annotations && inner.cache().may_repeat::<R>(&params);
        let harmless = settings.idempotent || trusted || R::METHOD.is_read_only();
        let runtime = Arc::clone(inner.runtime());
        let asked = runtime.now();
        let end = settings.total_timeout.map(|total| asked + total);
        Self {
            live: inner.connection.live(),
            attempts: Attempts::new(inner.connection.policy().most(), harmless),
            limits: WaitLimits {
                canceller: Canceller::default(),
                end,
                connection: Arc::clone(&inner.connection),
                runtime,
            },
            client,
            asked,
            params,
            settings,
            token,
            rounds: Rounds::default(),
            lookup: HeaderLookup::default(),
            tasks: None,
            ticket: None,
            answer_bytes: 0,
        }
    }

    /// What cancels it.
    pub(crate) fn canceller(&self) -> Canceller {
        self.limits.canceller.clone()
    }

    /// The answer, if it is kept and nobody insists on another.
    pub(crate) fn cache(&mut self) -> Option<Arc<str>> {
        if self.settings.fresh {
            return None;
        }
        let (cache, revision) = (self.client.inner.cache(), self.live.peer.revision);
        let (ticket, text) = CacheTicket::found::<R>(cache, revision, &self.params, self.asked)?;
        self.ticket = Some(ticket);
        Some(text)
    }

    /// Makes the next request.
    pub(crate) fn request(&mut self) -> Result<InFlightRequest<R>, Error> {
        // The connection of a client that is being closed is there for taking back what goes on.
        if self.limits.connection.is_closing() && !R::METHOD.takes_back() {
            return Err(Error::closed(Outcome::NotSent));
        }
        self.tasks = Tasks::of::<R>(&self.client, &self.live.peer, &self.params)?;
        let params = self.params_text()?;
        self.asked = self.limits.runtime.now();
        let inner = &self.client.inner;
        let over = inner.over(self.live.peer.revision);
        let mut ticket = CacheTicket::begin::<R>(inner.cache(), over, &self.params, self.asked)?;
        if self.rounds.is_later() {
            ticket.note_round();
        }
        self.ticket = Some(ticket);
        let options = CallOptions {
            timeout: self.settings.timeout,
            total_timeout: self.limits.end.map(|end| end.since(self.asked)),
            progress: self.token.clone().zip(self.settings.on_progress.take()),
            expects_late_answer: self.tasks.is_some() && takes_cancellations(&self.live.peer),
            // In 2025-11-25 what is to become a task is taken back as one.
            uncancellable: self.tasks == Some(Tasks::Experiment),
            ..CallOptions::default()
        };
        let request = PendingCall::new(&self.live.mailbox, R::METHOD, Some(params), options);
        self.limits.canceller.follow(&request);
        Ok(InFlightRequest::new(self.client.clone(), request, self.tasks))
    }

    /// The parameters, as the server's revision has them.
    fn params_text(&self) -> Result<Box<str>, Error> {
        let revision = self.live.peer.revision;
        let decoration = self.client.inner.cache().logs.decorate(&self.client.inner.connection.opener.decoration);
        let decoration = match &self.token {
            Some(token) => Cow::Owned(decoration.into_owned().with_progress_token(token)),
            None => decoration,
        };
        let text = era::params_text(revision, &self.params, &decoration).map_err(Error::encode)?;
        let text = self.rounds.add_input_responses(text, revision)?;
        match self.tasks {
            Some(tasks) => tasks.ask_for::<R>(text, &self.params),
            None => Ok(text),
        }
    }

    /// How long the last answer was.
    pub(crate) fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// Takes back what the next request needs.
    pub(crate) fn take_back(&mut self, request: &mut InFlightRequest<R>) {
        self.settings.on_progress = request.take_on_progress();
    }

    /// Looks at how a request ended.
    pub(crate) fn read(&mut self, ending: CallEnd) -> Step<R> {
        let loss = CallLoss::from_end(&ending);
        if let Some(loss) = loss
            && self.attempts.allow(loss)
        {
            let failed = LostConnection { live: Arc::clone(&self.live), at: self.asked, lost: loss.kind };
            return Step::On(Next::Retry(failed));
        }
        match text_of(ending, R::METHOD.name()) {
            Ok(text) => self.take_answer(&text),
            Err(error) if !self.rounds.is_later() && self.lookup.helps(&self.client, R::METHOD, &error) => {
                Step::On(Next::LookUp)
            }
            Err(error) if loss.is_some_and(|loss| loss.kind == LossKind::Connection) => {
                Step::On(Next::AwaitExitReason(error))
            }
            Err(error) => Step::Over(Err(self.with_what_is_known(error))),
        }
    }

    /// Looks at the text of an answer.
    pub(crate) fn take_answer(&mut self, text: &str) -> Step<R> {
        self.answer_bytes = text.len();
        if let Some(tasks) = self.tasks.filter(|tasks| *tasks == Tasks::Experiment)
            && let Some(task) = tasks.begun_by(text)
        {
            return self.follow(tasks, task);
        }
        let may_ask = R::METHOD.may_ask_back_in(self.live.peer.revision);
        let answer = AnyResult::from_json(text).map_err(|error| Error::decode(R::METHOD, error));
        match answer {
            Ok(AnyResult::InputRequired(asked)) if may_ask => Step::On(Next::Answer(asked)),
            Ok(AnyResult::Task(created)) if self.tasks == Some(Tasks::Extension) => {
                self.follow(Tasks::Extension, created.task)
            }
            answer => Step::Over(answer.and_then(complete::<R>).and_then(|result| self.keep(text, result))),
        }
    }

    /// The task is followed from here on, whether anybody goes on with this or not.
    fn follow(&self, tasks: Tasks, task: Task) -> Step<R> {
        // Few calls become tasks, and the others need not be as large.
        let following = tasks::follow(self.client.clone(), tasks, R::METHOD, task, self.settings.timeout);
        Step::On(Next::Follow(Box::pin(following)))
    }

    /// Takes note of a result, and checks it.
    fn keep(&mut self, text: &str, result: R::Result) -> Result<R::Result, Error> {
        self.ticket.take().map_or(Ok(()), |mut ticket| ticket.take::<R>(text, &result)).map(|()| result)
    }

    /// Checks a result that did not come as the answer.
    fn check(&self, result: R::Result) -> Result<R::Result, Error> {
        self.ticket.as_ref().map_or(Ok(()), |ticket| ticket.check::<R>(&result)).map(|()| result)
    }

    /// What was not sent now may have been before.
    fn with_what_is_known(&self, error: Error) -> Error {
        let before = self.rounds.is_later() || self.attempts.known() == Outcome::Unknown;
        if error.outcome() == Outcome::NotSent && before { error.with_outcome_unknown() } else { error }
    }

    /// Goes on to the end.
    pub(crate) async fn go(mut self: Box<Self>, mut next: Next) -> (Result<R::Result, Error>, Box<Self>) {
        loop {
            let mut request = match self.take(next).await {
                Ok(Continuation::Request(request)) => request,
                Ok(Continuation::Result(result)) => {
                    let read = serde_json::from_value(result).map_err(|error| Error::decode(R::METHOD, error));
                    return (read.and_then(|result| self.check(result)), self);
                }
                Err(error) => return (Err(error), self),
            };
            let ending = (&mut request).await;
            self.take_back(&mut request);
            let step = self.read(ending);
            drop(request);
            match step {
                Step::Over(result) => return (result, self),
                Step::On(more) => next = more,
            }
        }
    }

    async fn take(&mut self, next: Next) -> Result<Continuation<R>, Error> {
        match next {
            Next::Retry(failed) => {
                let known = if self.rounds.is_later() { Outcome::Unknown } else { self.attempts.known() };
                let another = self.limits.during(known, self.client.inner.connection.another(failed)).await?;
                self.live = another.map_err(|error| error.with_outcome(known))?;
            }
            Next::Answer(asked) => {
                // The server has not done it, and may have begun to before it asked.
                let answering = self.rounds.answer(&self.client, asked);
                let answered = self.limits.during(Outcome::Unknown, answering).await?;
                answered.map_err(|error| self.with_what_is_known(error))?;
            }
            Next::LookUp => self.limits.during(Outcome::Refused, look_up(self.client.clone())).await?,
            Next::Follow(following) => {
                let result = self.limits.during(Outcome::Unknown, following).await??;
                return Ok(Continuation::Result(Value::Object(result)));
            }
            Next::AwaitExitReason(error) => {
                let error = self.with_what_is_known(error);
                let exit_reason = self.client.inner.connection.obituary_of(&self.live);
                let exit_reason = self.limits.during(error.outcome(), exit_reason).await.ok().flatten();
                return Err(error.explained_by(exit_reason));
            }
        }
        let request = self.request().map_err(|error| self.with_what_is_known(error))?;
        Ok(Continuation::Request(request))
    }

    /// The same call, to be made once more.
    pub(crate) fn into_call(self) -> Call<R> {
        let Self { client, params, settings, .. } = self;
        Call { client, params: Ok(params), settings }
    }
}

/// What ends a call while it waits for something else than an answer.
struct WaitLimits {
    canceller: Canceller,
    /// When the call has taken long enough, over all that it takes.
    end: Option<Moment>,
    /// Nothing is waited for any more when this is closed.
    connection: Arc<ReconnectingConnection>,
    runtime: Arc<dyn Runtime>,
}

impl WaitLimits {
    /// What the work comes to, unless the call is ended before: then with an error that says this.
    async fn during<T>(&self, known: Outcome, work: impl Future<Output = T>) -> Result<T, Error> {
        let bounded = timeout_at(&*self.runtime, self.end.filter(|_| !mutant!(ForgetTotal)), work);
        let open = unless_stopped(self.connection.wait_until_closing(), bounded);
        match unless_stopped(self.canceller.cancelled(), open).await {
            Some(Some(Some(done))) => Ok(done),
            Some(Some(None)) => Err(Error::timed_out(known).saying("the total time of the call was up")),
            Some(None) => Err(Error::closed(known).saying("this client was closed")),
            None => Err(Error::cancelled(known)),
        }
    }
}
