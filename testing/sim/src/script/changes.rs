//! What a simulated server changes while it is connected, and what its clients subscribe to.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steadfast::server::{ServerPrompt, ServerResource};
use steadfast::{Server, ServerBuilder, ServerTool};

use crate::observation::json::Json;
use crate::script::rng::Random;

/// Resources that a server has from its beginning.
pub(crate) const RESOURCES: [&str; 3] = ["sim://a", "sim://b", "sim://c"];

/// A resource that comes and goes.
const EXTRA: &str = "sim://extra";

/// Resources that clients name: the last never exists.
const NAMED: [&str; 5] = ["sim://a", "sim://b", "sim://c", EXTRA, "sim://none"];

/// A change of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    /// What the resource at this URI holds.
    Updated(&'static str),
}

impl Change {
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(100) {
            0..20 => Self::Tools,
            20..35 => Self::Prompts,
            35..50 => Self::Resources,
            _ => Self::Updated(draw_uri(random)),
        }
    }

    /// Makes the change.
    pub(crate) fn make(self, server: &Server) {
        match self {
            Self::Tools => {
                if server.remove_tool("extra").is_none() {
                    server.add_tool(ServerTool::new("extra").handler(|| async { "extra" }));
                }
            }
            Self::Prompts => {
                if server.remove_prompt("extra").is_none() {
                    server.add_prompt(prompt("extra"));
                }
            }
            Self::Resources => {
                if server.remove_resource(EXTRA).is_none() {
                    server.add_resource(resource(EXTRA));
                }
            }
            Self::Updated(uri) => server.resource_updated(uri),
        }
    }

    /// The change that a notification tells, if it tells one.
    pub(crate) fn of_notification(method: &str, params: &Json<'_>) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self::Tools),
            "notifications/prompts/list_changed" => Some(Self::Prompts),
            "notifications/resources/list_changed" => Some(Self::Resources),
            // A URI that no client names stands for one that no client subscribed to.
            "notifications/resources/updated" => Some(Self::Updated(
                NAMED.into_iter().find(|uri| params["uri"].as_str() == Some(*uri)).unwrap_or("unknown"),
            )),
            _ => None,
        }
    }
}

/// The server with prompts and resources that can change.
pub(crate) fn with_changing_items(server: ServerBuilder) -> ServerBuilder {
    server.prompts([prompt("fixed")]).resources(RESOURCES.map(resource))
}

fn prompt(name: &str) -> ServerPrompt {
    ServerPrompt::new(name).blocking_handler(|| "a prompt")
}

fn resource(uri: &str) -> ServerResource {
    ServerResource::new(uri, "a resource").text("text")
}

/// What a client subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: Option<bool>,
    pub(crate) prompts: Option<bool>,
    pub(crate) resources: Option<bool>,
    /// Perhaps the same twice, perhaps one that does not exist.
    pub(crate) uris: Vec<&'static str>,
}

impl Filter {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let flag = |random: &mut Random| *random.pick(&[None, None, Some(false), Some(true), Some(true)]);
        let (tools, prompts, resources) = (flag(random), flag(random), flag(random));
        let uris = (0..*random.pick(&[0, 1, 1, 2, 4])).map(|_| draw_uri(random)).collect();
        Self { tools, prompts, resources, uris }
    }

    /// The value of `notifications` in the parameters of `subscriptions/listen`.
    pub(crate) fn to_json(&self) -> Value {
        let mut filter = json!({});
        let flags = [("tools", self.tools), ("prompts", self.prompts), ("resources", self.resources)];
        for (list, flag) in flags {
            if let Some(flag) = flag {
                filter[format!("{list}ListChanged")] = flag.into();
            }
        }
        if !self.uris.is_empty() {
            filter["resourceSubscriptions"] = json!(self.uris);
        }
        filter
    }

    /// Whether an acknowledgement promises exactly this. The server has everything that can be asked for, so that it honours
    /// all of it; `false` and absent mean the same.
    pub(crate) fn is_promised_by(&self, notifications: &Json<'_>) -> bool {
        let flag = |name: &str| notifications[name].as_bool().unwrap_or(false);
        let uris: BTreeSet<&str> =
            notifications["resourceSubscriptions"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        flag("toolsListChanged") == (self.tools == Some(true))
            && flag("promptsListChanged") == (self.prompts == Some(true))
            && flag("resourcesListChanged") == (self.resources == Some(true))
            && uris == self.uris.iter().copied().collect()
    }

    pub(crate) fn wants(&self, change: Change) -> bool {
        match change {
            Change::Tools => self.tools == Some(true),
            Change::Prompts => self.prompts == Some(true),
            Change::Resources => self.resources == Some(true),
            Change::Updated(uri) => self.uris.contains(&uri),
        }
    }
}

/// A resource that a client names.
pub(crate) fn draw_uri(random: &mut Random) -> &'static str {
    NAMED[random.index(NAMED.len())]
}
