//! The notifications: a type for each, which joins its method to its parameters.
//!
//! The types hold nothing and are never made: they stand where a notification has to be named at compile time.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cancel::CancelledParams;
use crate::elicit::ElicitationCompleteParams;
use crate::era::Encode;
use crate::logging::LoggingMessageParams;
use crate::method::Method;
use crate::page::EmptyParams;
use crate::progress::ProgressParams;
use crate::resource::ResourceParams;
use crate::subscription::SubscriptionParams;
use crate::task::DetailedTask;

/// A notification: its method and its parameters.
pub trait Notification {
    /// The method.
    const METHOD: Method;
    /// What it is sent with.
    type Params: Encode + Serialize + DeserializeOwned + Send + Sync + 'static;
}

macro_rules! notifications {
    ($($(#[$doc:meta])* $name:ident: $params:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Notification for $name {
            const METHOD: Method = Method::$name;
            type Params = $params;
        }
    )+

        /// Every notification here, so that a test can hold it against the table.
        #[cfg(test)]
        const BOUND: &[Method] = &[$(Method::$name),+];
    };
}

notifications! {
    /// `notifications/initialized`
    Initialized: EmptyParams;
    /// `notifications/cancelled`
    Cancelled: CancelledParams;
    /// `notifications/progress`
    Progress: ProgressParams;
    /// `notifications/message`
    LoggingMessage: LoggingMessageParams;
    /// `notifications/tools/list_changed`
    ToolListChanged: EmptyParams;
    /// `notifications/prompts/list_changed`
    PromptListChanged: EmptyParams;
    /// `notifications/resources/list_changed`
    ResourceListChanged: EmptyParams;
    /// `notifications/resources/updated`
    ResourceUpdated: ResourceParams;
    /// `notifications/roots/list_changed`
    RootsListChanged: EmptyParams;
    /// `notifications/elicitation/complete`
    ElicitationComplete: ElicitationCompleteParams;
    /// `notifications/tasks/status`
    TaskStatus: DetailedTask;
    /// `notifications/tasks`
    TaskUpdated: DetailedTask;
    /// `notifications/subscriptions/acknowledged`
    SubscriptionAcknowledged: SubscriptionParams;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notification_of_the_table_has_its_types() {
        let table: Vec<_> = Method::ALL.iter().copied().filter(|method| method.is_notification()).collect();
        assert_eq!(BOUND, table);
    }
}
