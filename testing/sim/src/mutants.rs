//! The faults that can be put in, with who finds each: the checker of the law that it breaks, on a search or a seed that finds
//! nothing without it. `tests/mutants.rs` shows that it is so.

use steadfast_proto::mutant::Mutant;

use crate::law::Law;
use crate::worlds::World;

/// Where a fault is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In a small world, searched through.
    Explore(&'static str),
    /// Under seeds of a world.
    Seeds(World),
    /// Under the seeds of a world that failed when the fault was in the code: see [`failed_seeds`](crate::failed_seeds).
    FailedSeeds(World),
}

impl Where {
    /// What it is, for people.
    pub fn name(self) -> String {
        match self {
            Self::Explore(name) => format!("explore \"{name}\""),
            Self::Seeds(world) => format!("seeds of {world}"),
            Self::FailedSeeds(world) => format!("failed seeds of {world}"),
        }
    }
}

/// Which checker finds which fault, and where.
pub const TABLE: &[(Mutant, Law, Where)] = &[
    (Mutant::AnswerTwice, Law::OneEnding, Where::Explore("server")),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Seeds(World::Cores)),
    (Mutant::AnswerAfterCancel, Law::Silence, Where::Explore("server")),
    (Mutant::AnswerAfterCancel, Law::Silence, Where::Explore("modern server")),
    (Mutant::ForgetTheUnanswered, Law::Answer, Where::Explore("server")),
    (Mutant::ForgetTheUnanswered, Law::Answer, Where::Seeds(World::Cores)),
    (Mutant::ForgetDeadlines, Law::Answer, Where::Explore("server")),
    (Mutant::KeepFramesOfCancelled, Law::Silence, Where::Explore("notifications")),
    (Mutant::KeepFramesOfCancelled, Law::Silence, Where::Seeds(World::Cores)),
    (Mutant::PanicOnLateCancel, Law::Lateness, Where::Explore("duplicates")),
    (Mutant::PanicOnLateAnswer, Law::Lateness, Where::Explore("duplicates")),
    (Mutant::CloseOnBadBytes, Law::Isolation, Where::Explore("notifications")),
    (Mutant::CloseOnBadBytes, Law::Isolation, Where::Seeds(World::Cores)),
    (Mutant::ForgetToReap, Law::Closing, Where::Explore("endings")),
    (Mutant::IterateWhileRemoving, Law::Closing, Where::Explore("calls")),
    (Mutant::LoseWaiterOnClose, Law::Closing, Where::Explore("calls")),
    (Mutant::LoseWaiterOnClose, Law::Closing, Where::Explore("client")),
    (Mutant::DrainForever, Law::Closing, Where::Explore("endings")),
    (Mutant::IgnoreLimit, Law::Bounded, Where::Explore("duplicates")),
    (Mutant::IgnoreLimit, Law::Bounded, Where::Seeds(World::Cores)),
    (Mutant::AcceptDuplicateId, Law::Identity, Where::Explore("duplicates")),
    (Mutant::ConfuseTextAndNumber, Law::Identity, Where::Explore("server")),
    (Mutant::AnswerOvertakes, Law::Order, Where::Explore("server")),
    (Mutant::CancelTheUnsent, Law::Order, Where::Explore("calls")),
    (Mutant::DropOutboxEntry, Law::OneEnding, Where::Seeds(World::Cores)),
    (Mutant::ForgetWhatWasSent, Law::Outcome, Where::Explore("client")),
    (Mutant::SwallowPanic, Law::Answer, Where::Seeds(World::Shell)),
    (Mutant::PollHandlerInDriver, Law::Isolation, Where::Seeds(World::Shell)),
    (Mutant::IgnoreStop, Law::Closing, Where::Seeds(World::Shell)),
    (Mutant::LoseChanges, Law::Answer, Where::Seeds(World::Shell)),
    (Mutant::LoseChanges, Law::Answer, Where::Seeds(World::Http)),
    (Mutant::ForgetAcknowledgements, Law::Answer, Where::Seeds(World::Shell)),
    (Mutant::ForgetAcknowledgements, Law::Isolation, Where::Seeds(World::Http)),
    (Mutant::TellTheCancelled, Law::Silence, Where::Seeds(World::Shell)),
    (Mutant::IgnoreFilters, Law::Identity, Where::Seeds(World::Shell)),
    (Mutant::IgnoreFilters, Law::Identity, Where::Seeds(World::Http)),
    (Mutant::EndSilently, Law::Closing, Where::Seeds(World::Shell)),
    (Mutant::IgnoreSubscriptionLimit, Law::Bounded, Where::Seeds(World::Shell)),
    (Mutant::EndUnacknowledged, Law::Order, Where::Seeds(World::Shell)),
    (Mutant::FailSubscriptions, Law::Closing, Where::Seeds(World::Http)),
    (Mutant::ResumeTooEarly, Law::Order, Where::Seeds(World::Http)),
    (Mutant::CloseWithResponse, Law::Answer, Where::Seeds(World::Http)),
    (Mutant::CutIsCancellation, Law::Answer, Where::Seeds(World::Http)),
    (Mutant::IgnoreHangup, Law::Closing, Where::Seeds(World::Http)),
    (Mutant::KeepDeleted, Law::Closing, Where::Seeds(World::Http)),
    (Mutant::KeepIdle, Law::Closing, Where::Seeds(World::Http)),
    (Mutant::CrossStreams, Law::Identity, Where::Seeds(World::Http)),
    (Mutant::KeepUnreadOfCancelled, Law::Silence, Where::Seeds(World::Http)),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Seeds(World::Http)),
    (Mutant::KeepDroppedCalls, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::CrossCalls, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::ForgetCallDeadlines, Law::Answer, Where::Seeds(World::Client)),
    (Mutant::ForgetWhatWasSent, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::CloseOnBadBytes, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::AnswerTwice, Law::OneEnding, Where::Seeds(World::Client)),
    (Mutant::KeepTasksOfDroppedCalls, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::KeepTasksOfDroppedCalls, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::IgnoreLateTasks, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::KeepTasksAtClose, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::KeepTasksAtClose, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::AnswerTasksAgain, Law::OneEnding, Where::Seeds(World::Client)),
    (Mutant::ForgetTotal, Law::Answer, Where::Seeds(World::Client)),
    (Mutant::WaitPastClose, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::PollLostTasks, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::ReportChangeBeforeListening, Law::Order, Where::Seeds(World::Client)),
    (Mutant::KeepStale, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::KeepExpired, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::KeepExpired, Law::Outcome, Where::Seeds(World::HttpClient)),
    (Mutant::RepeatHarmful, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::ForgetLostSubscriptions, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::UnsubscribeOverLimit, Law::Closing, Where::FailedSeeds(World::HttpClient)),
    (Mutant::KeepClientWhileUnsubscribing, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::LowerCallLimit, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::LowerCallLimit, Law::Outcome, Where::Seeds(World::HttpClient)),
    (Mutant::KeepDroppedCalls, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::IgnoreCancellations, Law::Silence, Where::Seeds(World::Client)),
    (Mutant::IgnoreCancellations, Law::Silence, Where::Seeds(World::HttpClient)),
    (Mutant::LoseWhatWasRead, Law::Answer, Where::Seeds(World::HttpClient)),
    (Mutant::SwallowAnswers, Law::Answer, Where::Seeds(World::Client)),
    (Mutant::SwallowAnswers, Law::Answer, Where::Seeds(World::HttpClient)),
    (Mutant::ResendInterrupted, Law::Identity, Where::Seeds(World::HttpClient)),
    (Mutant::KeepHalfRead, Law::Answer, Where::Seeds(World::HttpClient)),
    (Mutant::BrokenIsUnsent, Law::Outcome, Where::Seeds(World::HttpClient)),
    (Mutant::ReadDroppedResponses, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::KeepAbortedRequests, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::KeepLostSession, Law::Closing, Where::Seeds(World::HttpClient)),
    (Mutant::CrossCalls, Law::Outcome, Where::Seeds(World::HttpClient)),
    (Mutant::RefuseUnderAnyId, Law::OneEnding, Where::FailedSeeds(World::Cores)),
    (Mutant::TeardownsUseCallLimit, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::AnswerBehindDiscover, Law::Silence, Where::Seeds(World::Client)),
    (Mutant::CrossProgress, Law::Identity, Where::Seeds(World::Client)),
    (Mutant::LoseLines, Law::Answer, Where::Seeds(World::Client)),
    (Mutant::ReadTornOpening, Law::Outcome, Where::Seeds(World::Client)),
    (Mutant::PauseUntilClosed, Law::Closing, Where::FailedSeeds(World::Client)),
    (Mutant::DeliverBeforeStatus, Law::Closing, Where::FailedSeeds(World::HttpClient)),
    (Mutant::StopTooLate, Law::Closing, Where::Seeds(World::Shell)),
    (Mutant::SkipCleanups, Law::Closing, Where::Seeds(World::Shell)),
    (Mutant::TakeCallsAtTheEnd, Law::Closing, Where::Seeds(World::Client)),
    (Mutant::RepeatIds, Law::Identity, Where::Seeds(World::Client)),
    (Mutant::TimeOutSilently, Law::Closing, Where::Seeds(World::Client)),
];
