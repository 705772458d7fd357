//! The table of methods: who may send what, in which revision.
//!
//! This is the only version gate of the project. A method that the table does not give to a side in a revision does not
//! exist there; nothing else compares revisions to decide whether a message may be sent or answered. What the
//! parameters and results are is in [`crate::request`] and [`crate::notification`].

use std::fmt;

use crate::revision::Revision;

/// Which side may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// Clients.
    Client,
    /// Servers.
    Server,
    /// Either side.
    Both,
}

impl Sender {
    /// True if clients may send it.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    /// True if servers may send it.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// How a method travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carried {
    /// As a message of its own.
    Message,
    /// Inside the `inputRequests` of a result, never as a message (since 2026-07-28).
    InputRequest,
}

/// Where a method stands in one revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// Who may send it.
    pub sender: Sender,
    /// How it travels.
    pub carried: Carried,
}

/// What a receiver has to have declared before a method may be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// The server's tools.
    Tools,
    /// The server's prompts.
    Prompts,
    /// The server's resources.
    Resources,
    /// The server's completions (not declared in 2024-11-05: there the method is free to use).
    Completions,
    /// The server's log messages.
    Logging,
    /// Tasks of either side: a capability in 2025-11-25, an extension since 2026-07-28.
    Tasks,
    /// The client's roots.
    Roots,
    /// The client's access to a model.
    Sampling,
    /// The client's access to its user.
    Elicitation,
}

impl Capability {
    /// True if that revision has a way to declare it.
    pub fn exists_in(self, revision: Revision) -> bool {
        let first = match self {
            Self::Tools | Self::Prompts | Self::Resources | Self::Logging | Self::Roots | Self::Sampling => {
                Revision::V2024_11_05
            }
            Self::Completions => Revision::V2025_03_26,
            Self::Elicitation => Revision::V2025_06_18,
            Self::Tasks => Revision::V2025_11_25,
        };
        revision >= first
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The method.
    pub method: Method,
    /// Its name on the wire.
    pub name: &'static str,
    /// True if it has no answer.
    pub notification: bool,
    /// True if it only asks: nothing is different after it, however often it is made.
    pub is_read_only: bool,
    /// True if its result says how long it may be kept (since 2026-07-28).
    pub cacheable: bool,
    /// True if it may be answered with questions, or with a task, in place of its result (since 2026-07-28).
    pub asks_back: bool,
    /// What its receiver has to have declared.
    pub capability: Option<Capability>,
    /// Where it stands, by revision in the order of [`Revision::ALL`].
    places: [Option<Place>; Revision::ALL.len()],
}

impl Row {
    /// Where the method stands in that revision; `None`: it does not exist there.
    pub const fn place_in(&self, revision: Revision) -> Option<Place> {
        self.places[revision.index()]
    }
}

const CLIENT: Option<Place> = Some(Place { sender: Sender::Client, carried: Carried::Message });
const SERVER: Option<Place> = Some(Place { sender: Sender::Server, carried: Carried::Message });
const EITHER: Option<Place> = Some(Place { sender: Sender::Both, carried: Carried::Message });
const INPUT: Option<Place> = Some(Place { sender: Sender::Server, carried: Carried::InputRequest });
const ABSENT: Option<Place> = None;

/// A row for every revision: those after the last column that is written repeat it.
const fn columns<const WRITTEN: usize>(written: [Option<Place>; WRITTEN]) -> [Option<Place>; Revision::ALL.len()] {
    let mut all = [ABSENT; Revision::ALL.len()];
    let mut column = 0;
    while column < all.len() {
        all[column] = written[if column < WRITTEN { column } else { WRITTEN - 1 }];
        column += 1;
    }
    all
}

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident $name:literal $kind:ident $($mark:ident)* =>
        $capability:expr, [$($place:ident),+];)+) => {
        /// Every request and notification of every revision and of the tasks extension.
        ///
        /// ```
        /// use steadfast_model::{Method, Revision, Sender};
        /// let method = Method::from_name("tools/call").unwrap();
        /// assert_eq!(method.sender_in(Revision::V2024_11_05), Some(Sender::Client));
        /// assert_eq!(Method::Ping.sender_in(Revision::V2026_07_28), None);
        /// assert_eq!(Method::from_name("tools/destroy"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $variant,)+
        }

        impl Method {
            /// Every method, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The method of that name, if there is one in any revision.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The method's row of the table.
            pub const fn row(self) -> &'static Row {
                match self {
                    $(Self::$variant => const { &Row {
                        method: Self::$variant,
                        name: $name,
                        notification: methods!(@notification $kind),
                        is_read_only: methods!(@is_read_only $kind),
                        cacheable: false $(|| methods!(@cacheable $mark))*,
                        asks_back: false $(|| methods!(@asks_back $mark))*,
                        capability: $capability,
                        places: columns([$($place),+]),
                    } },)+
                }
            }
        }
    };
    (@notification Notification) => { true };
    (@notification $request:ident) => { false };
    (@is_read_only Question) => { true };
    (@is_read_only $other:ident) => { false };
    (@cacheable Cacheable) => { true };
    (@cacheable $other:ident) => { false };
    (@asks_back AsksBack) => { true };
    (@asks_back $other:ident) => { false };
}

use Capability::{Completions, Elicitation, Logging, Prompts, Resources, Roots, Sampling, Tasks, Tools};

// A question is a request that only asks: whoever does not know whether it arrived may ask again. What changes something
// is none, though making it twice were harmless: a subscription and a level belong to their connection.
// What is cacheable, or asks back, is so since 2026-07-28: no older revision has a way to say it.
// Columns: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
methods! {
    /// Opens a connection.
    Initialize "initialize" Request => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Asks whether the other side is there.
    Ping "ping" Question => None, [EITHER, EITHER, EITHER, EITHER, ABSENT];
    /// Asks what a server is.
    Discover "server/discover" Question Cacheable => None, [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// Lists the tools.
    ListTools "tools/list" Question Cacheable => Some(Tools), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Calls a tool.
    CallTool "tools/call" Request AsksBack => Some(Tools), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the prompts.
    ListPrompts "prompts/list" Question Cacheable => Some(Prompts), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Fills in a prompt.
    GetPrompt "prompts/get" Question AsksBack => Some(Prompts), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the resources.
    ListResources "resources/list" Question Cacheable => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the resource templates.
    ListResourceTemplates "resources/templates/list" Question Cacheable => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Reads a resource.
    ReadResource "resources/read" Question Cacheable AsksBack => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Asks to be told when a resource changes.
    Subscribe "resources/subscribe" Request => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Takes that back.
    Unsubscribe "resources/unsubscribe" Request => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Opens a stream of notifications.
    Listen "subscriptions/listen" Request => None, [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// Completes an argument.
    Complete "completion/complete" Question => Some(Completions), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Asks for log messages of a severity and above.
    SetLevel "logging/setLevel" Request => Some(Logging), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Asks for the folders that the client works in.
    ListRoots "roots/list" Question => Some(Roots), [SERVER, SERVER, SERVER, SERVER, INPUT];
    /// Asks the client's model.
    CreateMessage "sampling/createMessage" Request => Some(Sampling), [SERVER, SERVER, SERVER, SERVER, INPUT];
    /// Asks the client's user.
    Elicit "elicitation/create" Request => Some(Elicitation), [ABSENT, ABSENT, SERVER, SERVER, INPUT];
    /// Asks how a task is doing.
    GetTask "tasks/get" Question => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, CLIENT];
    /// Waits for a task's result.
    GetTaskPayload "tasks/result" Question => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// Lists the tasks.
    ListTasks "tasks/list" Question => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// Gives up a task.
    CancelTask "tasks/cancel" Request => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, CLIENT];
    /// Gives a task the input that it waits for.
    UpdateTask "tasks/update" Request => Some(Tasks), [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// The client is ready.
    Initialized "notifications/initialized" Notification => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Takes back a request.
    Cancelled "notifications/cancelled" Notification => None, [EITHER, EITHER, EITHER, EITHER, EITHER];
    /// How far a request is.
    Progress "notifications/progress" Notification => None, [EITHER, EITHER, EITHER, EITHER, SERVER];
    /// A log message.
    LoggingMessage "notifications/message" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// The list of tools changed.
    ToolListChanged "notifications/tools/list_changed" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// The list of prompts changed.
    PromptListChanged "notifications/prompts/list_changed" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// The list of resources changed.
    ResourceListChanged "notifications/resources/list_changed" Notification => None,
        [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// A resource changed.
    ResourceUpdated "notifications/resources/updated" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// The list of roots changed.
    RootsListChanged "notifications/roots/list_changed" Notification => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// The user has done what a URL asked for.
    ElicitationComplete "notifications/elicitation/complete" Notification => None,
        [ABSENT, ABSENT, ABSENT, SERVER, ABSENT];
    /// A task of 2025-11-25 changed.
    TaskStatus "notifications/tasks/status" Notification => None, [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// A task of the extension changed.
    TaskUpdated "notifications/tasks" Notification => None, [ABSENT, ABSENT, ABSENT, ABSENT, SERVER];
    /// A stream of notifications is open.
    SubscriptionAcknowledged "notifications/subscriptions/acknowledged" Notification => None,
        [ABSENT, ABSENT, ABSENT, ABSENT, SERVER];
}

impl Method {
    /// The method's name on the wire.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// True if it has no answer.
    pub const fn is_notification(self) -> bool {
        self.row().notification
    }

    /// True if it only asks: nothing is different after it, however often it is made.
    pub const fn is_read_only(self) -> bool {
        self.row().is_read_only
    }

    /// True if it takes back what an earlier request has begun.
    pub const fn takes_back(self) -> bool {
        matches!(self, Self::CancelTask | Self::Unsubscribe)
    }

    /// What its receiver has to have declared; where the revision has no way to declare it
    /// ([`Capability::exists_in`]), nothing.
    pub const fn capability(self) -> Option<Capability> {
        self.row().capability
    }

    /// Who may send it as a message in that revision; `None`: there is no such message.
    pub fn sender_in(self, revision: Revision) -> Option<Sender> {
        let place = self.row().place_in(revision)?;
        (place.carried == Carried::Message).then_some(place.sender)
    }

    /// How it travels in that revision; `None`: it does not exist there.
    pub fn carried_in(self, revision: Revision) -> Option<Carried> {
        self.row().place_in(revision).map(|place| place.carried)
    }

    /// True if its result says in that revision how long it may be kept.
    pub fn is_cacheable_in(self, revision: Revision) -> bool {
        self.row().cacheable && revision.is_stateless()
    }

    /// True if it may be answered in that revision with questions, or with a task, in place of its result.
    pub fn may_ask_back_in(self, revision: Revision) -> bool {
        self.row().asks_back && revision.is_stateless()
    }

    /// True if a client may send it as a message in that revision.
    pub fn from_client_in(self, revision: Revision) -> bool {
        self.sender_in(revision).is_some_and(Sender::is_client)
    }

    /// True if a server may send it as a message in that revision.
    pub fn from_server_in(self, revision: Revision) -> bool {
        self.sender_in(revision).is_some_and(Sender::is_server)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_kinds_match_them() {
        for &method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(method));
            assert_eq!(method.row().method, method);
            assert_eq!(method.is_notification(), method.name().starts_with("notifications/"));
        }
    }

    #[test]
    fn what_changes_something_does_not_only_ask() {
        let asks: Vec<_> =
            Method::ALL.iter().filter(|method| method.is_read_only()).map(|method| method.name()).collect();
        assert!(!asks.iter().any(|name| name.starts_with("notifications/")));
        for changes in [Method::Initialize, Method::CallTool, Method::UpdateTask, Method::CancelTask, Method::Elicit] {
            assert!(!changes.is_read_only(), "{changes}");
        }
        assert!(
            Method::ReadResource.is_read_only() && Method::GetPrompt.is_read_only() && Method::GetTask.is_read_only()
        );
        assert_eq!(asks.len(), 13);
    }

    #[test]
    fn the_newest_says_of_some_that_they_may_be_kept_and_of_some_that_they_may_ask_back() {
        let of = |has: fn(Method, Revision) -> bool, revision| {
            Method::ALL.iter().filter(|method| has(**method, revision)).map(|method| method.name()).collect::<Vec<_>>()
        };
        let newest = Revision::V2026_07_28;
        let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
        assert_eq!(
            of(Method::is_cacheable_in, newest),
            [&["server/discover"], &lists[..], &["resources/read"]].concat()
        );
        assert_eq!(of(Method::may_ask_back_in, newest), ["tools/call", "prompts/get", "resources/read"]);
        assert!(of(Method::is_cacheable_in, Revision::V2025_11_25).is_empty());
        assert!(of(Method::may_ask_back_in, Revision::V2025_11_25).is_empty());
    }

    fn names(revision: Revision, may_send: fn(Sender) -> bool, notification: bool) -> Vec<&'static str> {
        let sent = |method: &&Method| method.sender_in(revision).is_some_and(may_send);
        let of_kind = Method::ALL.iter().filter(|method| method.is_notification() == notification);
        of_kind.filter(sent).map(|method| method.name()).collect()
    }

    #[test]
    fn a_modern_server_sends_no_requests() {
        assert!(names(Revision::V2026_07_28, Sender::is_server, false).is_empty());
        assert_eq!(names(Revision::V2026_07_28, Sender::is_client, true), ["notifications/cancelled"]);
        for method in [Method::ListRoots, Method::CreateMessage, Method::Elicit] {
            assert_eq!(method.carried_in(Revision::V2026_07_28), Some(Carried::InputRequest));
        }
    }

    #[test]
    fn a_revision_without_a_column_has_the_methods_of_its_predecessor() {
        let (added, predecessor) = (Revision::V2999_12_31, Revision::V2026_07_28);
        for &method in Method::ALL {
            assert_eq!(method.row().place_in(added), method.row().place_in(predecessor), "{method}");
            assert_eq!(method.is_cacheable_in(added), method.is_cacheable_in(predecessor), "{method}");
            assert_eq!(method.may_ask_back_in(added), method.may_ask_back_in(predecessor), "{method}");
        }
    }

    #[test]
    fn the_first_revision_has_what_its_schema_lists() {
        let oldest = Revision::V2024_11_05;
        assert_eq!(names(oldest, Sender::is_client, false).len(), 13);
        assert_eq!(names(oldest, Sender::is_server, false), ["ping", "roots/list", "sampling/createMessage"]);
        assert_eq!(names(oldest, Sender::is_client, true).len(), 4);
        assert_eq!(names(oldest, Sender::is_server, true).len(), 7);
    }

    #[test]
    fn the_last_with_a_handshake_has_what_its_schema_lists() {
        let revision = Revision::V2025_11_25;
        assert_eq!(names(revision, Sender::is_client, false).len(), 17);
        assert_eq!(names(revision, Sender::is_server, false).len(), 8);
        assert_eq!(names(revision, Sender::is_client, true).len(), 5);
        assert_eq!(names(revision, Sender::is_server, true).len(), 9);
    }

    #[test]
    fn the_newest_has_what_its_schema_and_the_extension_list() {
        let newest = Revision::V2026_07_28;
        assert_eq!(names(newest, Sender::is_client, false).len(), 10 + 3);
        assert_eq!(names(newest, Sender::is_server, true).len(), 8 + 1);
    }
}
