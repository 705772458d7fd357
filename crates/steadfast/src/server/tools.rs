//! The tools of a server at one moment.
//!
//! A list never changes: adding or removing a tool makes a new one, and calls that are running keep what they started
//! with. The order is that of insertion, so that a client sees the same list each time. The answer to `tools/list` is
//! written once for each revision that asks.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use steadfast_model::era::{self, Decoration};
use steadfast_model::{ListToolsResult, Revision};

use super::tool::Tool;
use crate::error::Error;

/// An immutable list of tools.
pub(crate) struct Tools {
    list: Vec<Tool>,
    /// Positions in the list, by name.
    by_name: Vec<usize>,
    answers: [OnceLock<Arc<[u8]>>; Revision::ALL.len()],
}

impl Tools {
    /// A list of tools. Of several with one name, the last counts, in the place of the first.
    pub(crate) fn new(tools: impl IntoIterator<Item = Tool>) -> Self {
        let mut list: Vec<Tool> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for tool in tools {
            let place = *places.entry(tool.name().to_owned()).or_insert(list.len());
            match list.get_mut(place) {
                Some(listed) => *listed = tool,
                None => list.push(tool),
            }
        }
        Self::of_distinct(list)
    }

    /// A list of tools with different names.
    fn of_distinct(list: Vec<Tool>) -> Self {
        let mut by_name: Vec<usize> = (0..list.len()).collect();
        by_name.sort_unstable_by_key(|position| list.get(*position).map(Tool::name));
        Self { list, by_name, answers: Default::default() }
    }

    /// The tool of that name.
    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.list.get(self.position(name)?)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let name_at = |position: &usize| self.list.get(*position).map_or("", Tool::name);
        let found = self.by_name.binary_search_by(|position| name_at(position).cmp(name)).ok()?;
        self.by_name.get(found).copied()
    }

    /// The tools, in the order in which they were added.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.list.iter()
    }

    /// This list with one more tool, and the one that it takes the place of.
    pub(crate) fn with(&self, tool: Tool) -> (Self, Option<Tool>) {
        let mut list = self.list.clone();
        let replaced = if let Some(listed) = self.position(tool.name()).and_then(|position| list.get_mut(position)) {
            Some(std::mem::replace(listed, tool))
        } else {
            list.push(tool);
            None
        };
        (Self::of_distinct(list), replaced)
    }

    /// This list without that tool; `None` if it is not in it.
    pub(crate) fn without(&self, name: &str) -> Option<Self> {
        let position = self.position(name)?;
        let mut list = self.list.clone();
        list.remove(position);
        Some(Self::of_distinct(list))
    }

    /// The result of `tools/list` for a revision, written the first time that it is asked for.
    pub(crate) fn list_answer(&self, revision: Revision, decoration: &Decoration) -> Result<Arc<[u8]>, Error> {
        let kept = Revision::ALL.iter().position(|known| *known == revision).and_then(|at| self.answers.get(at));
        if let Some(answer) = kept.and_then(OnceLock::get) {
            return Ok(Arc::clone(answer));
        }
        let definitions = self.list.iter().map(|tool| tool.definition().clone()).collect();
        let mut written = Vec::new();
        era::write_result(revision, &ListToolsResult::new(definitions), decoration, &mut written)
            .map_err(Error::encode)?;
        let written = Arc::<[u8]>::from(written);
        // Of two that ask at the same time, the second gets the first one's text, which is the same.
        Ok(kept.map_or(written.clone(), |kept| Arc::clone(kept.get_or_init(|| written))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name).description(description).handler(|| async {})
    }

    fn names(tools: &Tools) -> Vec<&str> {
        tools.iter().map(Tool::name).collect()
    }

    #[test]
    fn the_order_is_that_of_insertion() {
        let tools = Tools::new(["b", "c", "a"].map(|name| tool(name, "")));
        assert_eq!(names(&tools), ["b", "c", "a"]);
        assert_eq!(tools.find("a").unwrap().name(), "a");
        assert!(tools.find("d").is_none());
    }

    #[test]
    fn a_replacement_keeps_the_place() {
        let tools = Tools::new(["b", "c", "a"].map(|name| tool(name, "old")));
        let (tools, replaced) = tools.with(tool("c", "new"));
        assert_eq!(names(&tools), ["b", "c", "a"]);
        assert_eq!(replaced.unwrap().definition().description.as_deref(), Some("old"));
        assert_eq!(tools.find("c").unwrap().definition().description.as_deref(), Some("new"));
    }

    #[test]
    fn of_two_with_one_name_the_last_counts() {
        let tools = Tools::new([tool("a", "old"), tool("b", ""), tool("a", "new")]);
        assert_eq!(names(&tools), ["a", "b"]);
        assert_eq!(tools.find("a").unwrap().definition().description.as_deref(), Some("new"));
    }

    #[test]
    fn what_is_removed_is_gone() {
        let tools = Tools::new(["b", "c", "a"].map(|name| tool(name, "")));
        let tools = tools.without("c").unwrap();
        assert_eq!(names(&tools), ["b", "a"]);
        assert!(tools.find("c").is_none() && tools.without("c").is_none());
    }

    #[test]
    fn the_answer_is_written_once_a_revision() {
        let tools = Tools::new([tool("a", "")]);
        let decoration = Decoration::of_server(&steadfast_model::Implementation::new("s", "1"));
        let first = tools.list_answer(Revision::LATEST, &decoration).unwrap();
        let second = tools.list_answer(Revision::LATEST, &decoration).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let newest: serde_json::Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(newest["tools"][0]["name"], "a");
        assert_eq!(newest["resultType"], "complete");
        let older = tools.list_answer(Revision::V2024_11_05, &decoration).unwrap();
        let older: serde_json::Value = serde_json::from_slice(&older).unwrap();
        assert_eq!(older["tools"][0]["name"], "a");
        assert!(older.get("resultType").is_none());
    }
}
