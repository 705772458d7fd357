//! The table of methods: which side may send which method, in which revision.
//!
//! The method table alone decides whether a message may be sent or answered in a revision: a method that the table does not
//! give to a side does not exist for that side. Differences between revisions that are not about messages are methods of
//! [`Revision`], or are in the encoders of [`crate::wire`]. The parameters and results of each method are in [`crate::request`]
//! and [`crate::notification`].

use std::fmt;

use crate::revision::Revision;
use crate::vendor_method::VendorMethod;

/// Which side may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SentBy {
    /// Clients.
    Client,
    /// Servers.
    Server,
    /// Either side.
    Both,
}

impl SentBy {
    /// True if clients may send the message.
    pub const fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    /// True if servers may send the message.
    pub const fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// How a method is sent, as a JSON-RPC message or inside a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// The method is sent as a message.
    Message,
    /// The method is sent in the `inputRequests` of a result (since 2026-07-28).
    InputRequest,
}

/// Which side may send a method in one revision, and how.
#[derive(Clone, Copy)]
struct MethodUsage {
    sender: SentBy,
    delivery: MethodKind,
}

/// A capability that a receiver has to declare before a method may be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// The server's tools.
    Tools,
    /// The server's prompts.
    Prompts,
    /// The server's resources.
    Resources,
    /// The server's completions (2024-11-05 has no such capability: there `completion/complete` needs none).
    Completions,
    /// The capability of a server to send log messages.
    Logging,
    /// MCP tasks of either side: a capability in 2025-11-25, an extension since 2026-07-28.
    Tasks,
    /// The client's roots.
    Roots,
    /// The capability of a client to send requests of the server to a model (sampling).
    Sampling,
    /// The capability of a client to ask its user for input (elicitation).
    Elicitation,
}

impl Capability {
    /// True if the capability can be declared in this revision.
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

/// What the protocol says about one method: a row of the table of methods.
struct MethodInfo {
    /// The name of the method on the wire, such as `tools/call`.
    name: &'static str,
    /// The method is a notification, which has no response.
    notification: bool,
    /// The method changes nothing at its receiver, so that a request of the method may be sent again.
    is_read_only: bool,
    /// The method's result says how long clients may cache it (since 2026-07-28).
    cacheable: bool,
    /// The response to the method may be input requests or a task instead of the result (since 2026-07-28).
    deferrable: bool,
    /// The capability that the receiver of the method has to declare.
    capability: Option<Capability>,
    /// Who may send the method in each revision, in the order of [`Revision::ALL`].
    availability: [Option<MethodUsage>; Revision::ALL.len()],
}

const CLIENT: Option<MethodUsage> = Some(MethodUsage { sender: SentBy::Client, delivery: MethodKind::Message });
const SERVER: Option<MethodUsage> = Some(MethodUsage { sender: SentBy::Server, delivery: MethodKind::Message });
const EITHER: Option<MethodUsage> = Some(MethodUsage { sender: SentBy::Both, delivery: MethodKind::Message });
const INPUT: Option<MethodUsage> = Some(MethodUsage { sender: SentBy::Server, delivery: MethodKind::InputRequest });
const ABSENT: Option<MethodUsage> = None;

/// Which side may send a method in every revision, for the method table. In the method table, revisions after the last written
/// column repeat that column.
const fn columns<const WRITTEN: usize>(
    written: [Option<MethodUsage>; WRITTEN],
) -> [Option<MethodUsage>; Revision::ALL.len()] {
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
        /// use steadfast_model::{Method, Revision, SentBy};
        /// let method = Method::from_name("tools/call").unwrap();
        /// assert_eq!(method.sender_in(Revision::V2024_11_05), Some(SentBy::Client));
        /// assert_eq!(Method::Ping.sender_in(Revision::V2026_07_28), None);
        /// assert_eq!(Method::from_name("tools/destroy"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $variant,)+
            /// A method that is not in the specification.
            Vendor(VendorMethod),
        }

        impl Method {
            /// Every method of the specification, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The method of that name, if there is one in any revision of the specification.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The entry of this method in the method table; `None` for a vendor's method.
            const fn info(self) -> Option<&'static MethodInfo> {
                match self {
                    Self::Vendor(_) => None,
                    $(Self::$variant => Some(const { &MethodInfo {
                        name: $name,
                        notification: methods!(@notification $kind),
                        is_read_only: methods!(@is_read_only $kind),
                        cacheable: false $(|| methods!(@cacheable $mark))*,
                        deferrable: false $(|| methods!(@deferrable $mark))*,
                        capability: $capability,
                        availability: columns([$($place),+]),
                    } }),)+
                }
            }
        }
    };
    (@notification Notification) => { true };
    (@notification $request:ident) => { false };
    (@is_read_only Query) => { true };
    (@is_read_only $other:ident) => { false };
    (@cacheable Cacheable) => { true };
    (@cacheable $other:ident) => { false };
    (@deferrable Deferrable) => { true };
    (@deferrable $other:ident) => { false };
}

use Capability::{Completions, Elicitation, Logging, Prompts, Resources, Roots, Sampling, Tasks, Tools};

// A query is a request that changes nothing: a client that does not know whether it arrived may send it again. Requests that
// change something are not queries even if sending them twice is harmless: a subscription and a log level belong to their
// connection.
// Results are cacheable or deferrable since 2026-07-28: older revisions have no members for it.
// A row may leave out columns at its end: revisions without a column repeat the last one.
// Columns: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.
methods! {
    /// Opens a connection.
    Initialize "initialize" Request => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Checks that the other side responds.
    Ping "ping" Query => None, [EITHER, EITHER, EITHER, EITHER, ABSENT];
    /// Discovers the revisions and capabilities of a server.
    Discover "server/discover" Query Cacheable => None, [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// Lists the tools.
    ListTools "tools/list" Query Cacheable => Some(Tools), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Calls a tool.
    CallTool "tools/call" Request Deferrable => Some(Tools), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the prompts.
    ListPrompts "prompts/list" Query Cacheable => Some(Prompts), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Gets a prompt, filled in with arguments.
    GetPrompt "prompts/get" Query Deferrable => Some(Prompts), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the resources.
    ListResources "resources/list" Query Cacheable => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Lists the resource templates.
    ListResourceTemplates "resources/templates/list" Query Cacheable => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Reads a resource.
    ReadResource "resources/read" Query Cacheable Deferrable => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Subscribes to changes of a resource.
    Subscribe "resources/subscribe" Request => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Ends that subscription.
    Unsubscribe "resources/unsubscribe" Request => Some(Resources), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Opens a subscription, which is a stream of notifications from the server to the client.
    Listen "subscriptions/listen" Request => None, [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// Completes an argument.
    Complete "completion/complete" Query => Some(Completions), [CLIENT, CLIENT, CLIENT, CLIENT, CLIENT];
    /// Sets the minimum level of log messages.
    SetLevel "logging/setLevel" Request => Some(Logging), [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Lists the directories that the client works in.
    ListRoots "roots/list" Query => Some(Roots), [SERVER, SERVER, SERVER, SERVER, INPUT];
    /// Sends a request to the client's model.
    CreateMessage "sampling/createMessage" Request => Some(Sampling), [SERVER, SERVER, SERVER, SERVER, INPUT];
    /// Asks the client's user for input.
    Elicit "elicitation/create" Request => Some(Elicitation), [ABSENT, ABSENT, SERVER, SERVER, INPUT];
    /// Gets the status of a task.
    GetTask "tasks/get" Query => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, CLIENT];
    /// Waits for the result of an MCP task.
    GetTaskPayload "tasks/result" Query => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// Lists the tasks.
    ListTasks "tasks/list" Query => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// Cancels a task.
    CancelTask "tasks/cancel" Request => Some(Tasks), [ABSENT, ABSENT, ABSENT, EITHER, CLIENT];
    /// Sends the input that a task waits for.
    UpdateTask "tasks/update" Request => Some(Tasks), [ABSENT, ABSENT, ABSENT, ABSENT, CLIENT];
    /// The client is ready for requests of the server.
    Initialized "notifications/initialized" Notification => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// Cancels a request.
    Cancelled "notifications/cancelled" Notification => None, [EITHER, EITHER, EITHER, EITHER, EITHER];
    /// Reports the progress of a request.
    Progress "notifications/progress" Notification => None, [EITHER, EITHER, EITHER, EITHER, SERVER];
    /// A log message.
    LoggingMessage "notifications/message" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// Notifies the client that the server's list of tools has changed.
    ToolListChanged "notifications/tools/list_changed" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// Notifies the client that the server's list of prompts has changed.
    PromptListChanged "notifications/prompts/list_changed" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// Notifies the client that the server's list of resources has changed.
    ResourceListChanged "notifications/resources/list_changed" Notification => None,
        [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// A resource changed.
    ResourceUpdated "notifications/resources/updated" Notification => None, [SERVER, SERVER, SERVER, SERVER, SERVER];
    /// Notifies the server that the client's list of roots has changed.
    RootsListChanged "notifications/roots/list_changed" Notification => None, [CLIENT, CLIENT, CLIENT, CLIENT, ABSENT];
    /// The user has completed an elicitation by URL.
    ElicitationComplete "notifications/elicitation/complete" Notification => None,
        [ABSENT, ABSENT, ABSENT, SERVER, ABSENT];
    /// Notifies the other side that the status of an MCP task has changed (2025-11-25 only).
    TaskStatus "notifications/tasks/status" Notification => None, [ABSENT, ABSENT, ABSENT, EITHER, ABSENT];
    /// A task of the tasks extension has changed (since 2026-07-28).
    TaskUpdated "notifications/tasks" Notification => None, [ABSENT, ABSENT, ABSENT, ABSENT, SERVER];
    /// The server has opened a stream of notifications.
    SubscriptionAcknowledged "notifications/subscriptions/acknowledged" Notification => None,
        [ABSENT, ABSENT, ABSENT, ABSENT, SERVER];
}

impl Method {
    /// A request that is not in the specification: see [`VendorMethod::request`].
    pub const fn vendor_request(name: &'static str) -> Self {
        Self::Vendor(VendorMethod::request(name))
    }

    /// A notification that is not in the specification: see [`VendorMethod::notification`].
    pub const fn vendor_notification(name: &'static str) -> Self {
        Self::Vendor(VendorMethod::notification(name))
    }

    /// True if this method is a request that is not in the specification.
    pub const fn is_vendor_request(self) -> bool {
        matches!(self, Self::Vendor(method) if !method.is_notification())
    }

    /// True if this method is a notification that is not in the specification.
    pub const fn is_vendor_notification(self) -> bool {
        matches!(self, Self::Vendor(method) if method.is_notification())
    }

    /// The method's name on the wire. The name of a method needs no escapes in JSON.
    pub const fn name(self) -> &'static str {
        match (self, self.info()) {
            (Self::Vendor(method), _) => method.name(),
            (_, Some(info)) => info.name,
            (_, None) => "",
        }
    }

    /// True if the method is a notification, which has no response.
    pub const fn is_notification(self) -> bool {
        match (self, self.info()) {
            (Self::Vendor(method), _) => method.is_notification(),
            (_, info) => matches!(info, Some(info) if info.notification),
        }
    }

    /// True if a request of this method changes nothing on the receiver, so that the request may be sent again.
    pub const fn is_read_only(self) -> bool {
        match (self, self.info()) {
            (Self::Vendor(method), _) => method.is_read_only(),
            (_, info) => matches!(info, Some(info) if info.is_read_only),
        }
    }

    /// True if a request of this method ends what an earlier request has started: a task or a subscription.
    pub const fn is_teardown(self) -> bool {
        matches!(self, Self::CancelTask | Self::Unsubscribe)
    }

    /// The capability that the receiver of this method has to declare, in revisions where it can be declared
    /// ([`Capability::exists_in`]).
    pub const fn capability(self) -> Option<Capability> {
        match self.info() {
            Some(info) => info.capability,
            None => None,
        }
    }

    /// Which side may send this method as a message in a revision; `None` if the revision has no such message.
    pub fn sender_in(self, revision: Revision) -> Option<SentBy> {
        let availability = self.availability_in(revision)?;
        (availability.delivery == MethodKind::Message).then_some(availability.sender)
    }

    /// How this method is sent in a revision, as a message or inside a result; `None` if the revision does not have
    /// the method.
    pub fn delivery_in(self, revision: Revision) -> Option<MethodKind> {
        self.availability_in(revision).map(|availability| availability.delivery)
    }

    fn availability_in(self, revision: Revision) -> Option<MethodUsage> {
        match self.info() {
            Some(info) => info.availability[revision.index()],
            // In stateless revisions servers send no requests.
            None if revision.is_stateless() && !self.is_notification() => CLIENT,
            None => EITHER,
        }
    }

    /// True if the result of this method says in this revision how long it may be cached.
    pub fn is_cacheable_in(self, revision: Revision) -> bool {
        self.info().is_some_and(|info| info.cacheable) && revision.is_stateless()
    }

    /// True if the response to this method may be input requests or a task in this revision, instead of the result.
    pub fn is_deferrable_in(self, revision: Revision) -> bool {
        self.info().is_some_and(|info| info.deferrable) && revision.is_stateless()
    }

    /// True if a client may send this method as a message in this revision.
    pub fn from_client_in(self, revision: Revision) -> bool {
        self.sender_in(revision).is_some_and(SentBy::is_client)
    }

    /// True if a server may send this method as a message in this revision.
    pub fn from_server_in(self, revision: Revision) -> bool {
        self.sender_in(revision).is_some_and(SentBy::is_server)
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
    fn method_names_round_trip_and_match_their_kind() {
        for &method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(method));
            assert_eq!(method.is_notification(), method.name().starts_with("notifications/"));
        }
    }

    #[test]
    fn requests_that_change_something_are_not_read_only() {
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
    fn some_methods_are_cacheable_or_deferrable_since_2026_07_28() {
        let of = |has: fn(Method, Revision) -> bool, revision| {
            Method::ALL.iter().filter(|method| has(**method, revision)).map(|method| method.name()).collect::<Vec<_>>()
        };
        let newest = Revision::V2026_07_28;
        let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
        assert_eq!(
            of(Method::is_cacheable_in, newest),
            [&["server/discover"], &lists[..], &["resources/read"]].concat()
        );
        assert_eq!(of(Method::is_deferrable_in, newest), ["tools/call", "prompts/get", "resources/read"]);
        assert!(of(Method::is_cacheable_in, Revision::V2025_11_25).is_empty());
        assert!(of(Method::is_deferrable_in, Revision::V2025_11_25).is_empty());
    }

    fn names(revision: Revision, may_send: fn(SentBy) -> bool, notification: bool) -> Vec<&'static str> {
        let sent = |method: &&Method| method.sender_in(revision).is_some_and(may_send);
        let of_kind = Method::ALL.iter().filter(|method| method.is_notification() == notification);
        of_kind.filter(sent).map(|method| method.name()).collect()
    }

    #[test]
    fn a_stateless_server_sends_no_requests() {
        assert!(names(Revision::V2026_07_28, SentBy::is_server, false).is_empty());
        assert_eq!(names(Revision::V2026_07_28, SentBy::is_client, true), ["notifications/cancelled"]);
        for method in [Method::ListRoots, Method::CreateMessage, Method::Elicit] {
            assert_eq!(method.delivery_in(Revision::V2026_07_28), Some(MethodKind::InputRequest));
        }
    }

    #[test]
    fn a_revision_without_a_column_has_the_methods_of_its_predecessor() {
        let (added, predecessor) = (Revision::V2999_12_31, Revision::V2026_07_28);
        for &method in Method::ALL {
            let at = |revision| (method.sender_in(revision), method.delivery_in(revision));
            assert_eq!(at(added), at(predecessor), "{method}");
            assert_eq!(method.is_cacheable_in(added), method.is_cacheable_in(predecessor), "{method}");
            assert_eq!(method.is_deferrable_in(added), method.is_deferrable_in(predecessor), "{method}");
        }
    }

    #[test]
    fn the_first_revision_has_what_its_schema_lists() {
        let oldest = Revision::V2024_11_05;
        assert_eq!(names(oldest, SentBy::is_client, false).len(), 13);
        assert_eq!(names(oldest, SentBy::is_server, false), ["ping", "roots/list", "sampling/createMessage"]);
        assert_eq!(names(oldest, SentBy::is_client, true).len(), 4);
        assert_eq!(names(oldest, SentBy::is_server, true).len(), 7);
    }

    #[test]
    fn the_last_with_a_handshake_has_what_its_schema_lists() {
        let revision = Revision::V2025_11_25;
        assert_eq!(names(revision, SentBy::is_client, false).len(), 17);
        assert_eq!(names(revision, SentBy::is_server, false).len(), 8);
        assert_eq!(names(revision, SentBy::is_client, true).len(), 5);
        assert_eq!(names(revision, SentBy::is_server, true).len(), 9);
    }

    #[test]
    fn the_newest_has_what_its_schema_and_the_extension_list() {
        let newest = Revision::V2026_07_28;
        assert_eq!(names(newest, SentBy::is_client, false).len(), 10 + 3);
        assert_eq!(names(newest, SentBy::is_server, true).len(), 8 + 1);
    }
}
