//! Which scenarios a revision asks for, as the suite's own `list --requirements` prints them.

use crate::failure::{Failure, Outcome};

/// The requirement sets of the suite.
pub(crate) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The scenarios of one role and revision.
#[derive(Debug)]
pub(crate) struct Requirements(Vec<Scenario>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Whether the suite counts it. The others are run all the same, and have to pass here too.
    pub(crate) scored: bool,
}

impl Requirements {
    /// Reads the scenarios for servers from the printed list.
    pub(crate) fn of_servers(list: &str) -> Outcome<Self> {
        Self::of(list, "Server scenarios", " [server]")
    }

    /// Reads the scenarios for clients from the printed list.
    pub(crate) fn of_clients(list: &str) -> Outcome<Self> {
        Self::of(list, "Client scenarios", " [client]")
    }

    fn of(list: &str, heading: &str, mark: &str) -> Outcome<Self> {
        let mut scenarios = Vec::new();
        let mut section = Section::Other;
        for line in list.lines() {
            if !line.starts_with(' ') {
                section = match line {
                    line if line.starts_with(heading) => Section::Scored,
                    line if line.starts_with("Run and reported, but never scored") => Section::NotScored,
                    // A blank line ends nothing.
                    "" => section,
                    _ => Section::Other,
                };
                continue;
            }
            let Some(entry) = line.trim().strip_prefix("- ") else { continue };
            match section {
                Section::Scored => scenarios.push(Scenario { name: entry.to_owned(), scored: true }),
                Section::NotScored => {
                    if let Some(name) = entry.strip_suffix(mark) {
                        scenarios.push(Scenario { name: name.to_owned(), scored: false });
                    }
                }
                Section::Other => {}
            }
        }
        if !scenarios.iter().any(|scenario| scenario.scored) {
            return Err(Failure::new(format!("the suite's list of requirements has another form now:\n{list}")));
        }
        Ok(Self(scenarios))
    }

    /// Adds one that the list does not have.
    pub(crate) fn add(&mut self, name: &str) {
        self.0.push(Scenario { name: name.to_owned(), scored: false });
    }

    /// Drops all but one.
    pub(crate) fn keep(&mut self, name: &str) {
        self.0.retain(|scenario| scenario.name == name);
    }

    /// Whether this one is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|scenario| scenario.name == name)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Requirements {
    type Item = Scenario;
    type IntoIter = std::vec::IntoIter<Scenario>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[derive(Clone, Copy)]
enum Section {
    Scored,
    NotScored,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "Required for 2025-11-25 (4 scenarios, frozen):

Server scenarios (test against a server):
  - ping
  - tools-list

Client scenarios (test against a client):
  - initialize

Run and reported, but never scored:
  extension (1):
    - auth/dpop [client]
  pending (1):
    - server-sse-polling [server]
";

    fn scenario(name: &str, scored: bool) -> Scenario {
        Scenario { name: name.to_owned(), scored }
    }

    #[test]
    fn only_those_for_servers_are_taken() {
        let read: Vec<Scenario> = Requirements::of_servers(LIST).unwrap().into_iter().collect();
        assert_eq!(read, [scenario("ping", true), scenario("tools-list", true), scenario("server-sse-polling", false)]);
    }

    #[test]
    fn only_those_for_clients_are_taken() {
        let read: Vec<Scenario> = Requirements::of_clients(LIST).unwrap().into_iter().collect();
        assert_eq!(read, [scenario("initialize", true), scenario("auth/dpop", false)]);
    }

    #[test]
    fn a_list_of_another_form_is_no_list_without_scenarios() {
        assert!(Requirements::of_servers("{\"server\":[\"ping\"]}").is_err());
    }

    #[test]
    fn one_can_be_kept() {
        let mut requirements = Requirements::of_servers(LIST).unwrap();
        requirements.keep("ping");
        assert_eq!(requirements.len(), 1);
        requirements.keep("pong");
        assert!(requirements.is_empty());
    }
}
