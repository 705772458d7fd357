//! How a server is put together.

use std::panic::Location;

use steadfast_model::{Cache, Icon, Implementation};
use steadfast_proto::connection::Limits;

use super::seal::StateKeys;
use super::tool::Tool;
use super::{IntoServer, Profile, Server};
use crate::error::Error;

/// A server in the making: see [`Server::builder`].
#[derive(Debug, Clone)]
#[must_use = "a server is made by `build`"]
pub struct ServerBuilder {
    profile: Profile,
    tools: Vec<Tool>,
}

impl ServerBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        let profile = Profile {
            info,
            instructions: None,
            cache: Cache::default(),
            limits: Limits::default(),
            state_keys: StateKeys::random(),
        };
        Self { profile, tools: Vec::new() }
    }

    /// The name that people see.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.profile.info.title = Some(title.into());
        self
    }

    /// What the server is, in a sentence for people.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.profile.info.description = Some(description.into());
        self
    }

    /// Adds a picture.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.profile.info.icons.push(icon);
        self
    }

    /// Where people can read more.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.profile.info.website_url = Some(url.into());
        self
    }

    /// How to use the server, for the model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.profile.instructions = Some(instructions.into());
        self
    }

    /// How long clients may keep lists, and who may be given the copy (since 2026-07-28). Not at all by default.
    ///
    /// ```
    /// use steadfast::{Cache, CacheScope, Server};
    /// let server = Server::builder("steady", "1.0.0").cache(Cache::new(60_000, CacheScope::Public)).build();
    /// ```
    pub fn cache(mut self, cache: Cache) -> Self {
        self.profile.cache = cache;
        self
    }

    /// How much each connection may hold, and how long it may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.profile.limits = limits;
        self
    }

    /// The keys that seal what clients carry for the server between the rounds of a request (since 2026-07-28). Made anew
    /// for each server unless told.
    pub fn state_keys(mut self, keys: StateKeys) -> Self {
        self.profile.state_keys = keys;
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Makes the server.
    ///
    /// # Panics
    ///
    /// If two tools have one name, or a tool has a [problem](Tool::problem). Where tools come from outside of the program
    /// use [`ServerBuilder::try_build`].
    #[track_caller]
    pub fn build(self) -> Server {
        let name = self.profile.info.name.clone();
        match self.try_build() {
            Ok(server) => server,
            Err(error) => panic!("the server `{name}` made at {}: {error}", Location::caller()),
        }
    }

    /// Makes the server, or says why not: two tools have one name, or a tool has a [problem](Tool::problem).
    ///
    /// ```
    /// use steadfast::{Server, Tool};
    ///
    /// let tool = Tool::new("ready").handler(|| async { true });
    /// let error = Server::builder("twins", "1.0.0").tool(tool.clone()).tool(tool).try_build().unwrap_err();
    /// assert_eq!(error.to_string(), "there are two tools named `ready`");
    /// ```
    pub fn try_build(self) -> Result<Server, Error> {
        let mut names: Vec<&str> = self.tools.iter().map(Tool::name).collect();
        names.sort_unstable();
        if let Some((twice, _)) = names.iter().zip(names.iter().skip(1)).find(|(left, right)| left == right) {
            return Err(Error::usage(format!("there are two tools named `{twice}`")));
        }
        for tool in &self.tools {
            if let Some(problem) = tool.problem() {
                return Err(Error::usage(format!("the tool `{}` cannot be served: {problem}", tool.name())));
            }
        }
        Ok(Server::assemble(self.profile, self.tools))
    }
}

impl IntoServer for ServerBuilder {
    #[track_caller]
    fn into_server(self) -> Server {
        self.build()
    }
}
