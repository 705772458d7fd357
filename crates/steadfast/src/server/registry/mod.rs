//! The lists of a server: its tools, its prompts, its resources and its resource templates.
//!
//! A catalog is immutable: adding or removing an item makes a new catalog, so running requests keep the catalog that
//! they started with. The items of a catalog are in the order of insertion, so that a client sees the same list each
//! time. The first page of a list is encoded once per revision.

pub(crate) mod cursor;
pub(crate) mod description;
pub(crate) mod names;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use steadfast_model::Revision;
use steadfast_model::wire::{self, PerMessageMembers, RequestResult};

use crate::error::Error;
use cursor::CatalogCursor;

/// An item of a server's catalog: a tool, a prompt, a resource or a resource template.
pub(crate) trait CatalogItem: Clone {
    /// The kind of the list, which is part of each cursor, so that the cursor of another kind of list is detected.
    const KIND: u8;
    /// The type of the item's definition, which clients list.
    type Definition: Clone;
    /// The result of a list request.
    type List: RequestResult;

    /// The key under which the item is looked up: its name, or its URI.
    fn key(&self) -> &str;
    /// The definition of the item, which clients list.
    fn definition(&self) -> &Self::Definition;
    /// Builds one page of the list.
    fn page(definitions: Vec<Self::Definition>, next_cursor: Option<String>) -> Self::List;
}

/// An immutable list of the tools, prompts, resources or resource templates of a server.
pub(crate) struct Catalog<T> {
    list: Vec<CatalogEntry<T>>,
    /// The positions of the items in the list, sorted by key.
    by_key: Vec<usize>,
    /// The serial number of the next item that is added.
    next_serial: u64,
    page_size: usize,
    first_pages: [OnceLock<Arc<[u8]>>; Revision::ALL.len()],
}

#[derive(Clone)]
struct CatalogEntry<T> {
    /// Numbers the items of a catalog in the order of insertion, so that a cursor still finds its position after other
    /// items were added or removed.
    serial: u64,
    item: T,
}

impl<T: CatalogItem> Catalog<T> {
    /// Creates a catalog of these items with this page size. If several items have the same key, the last of them is
    /// used, at the position of the first.
    pub(crate) fn new(items: impl IntoIterator<Item = T>, page_size: usize) -> Self {
        let mut list: Vec<CatalogEntry<T>> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        let mut next_serial = 0;
        for item in items {
            let position = *positions.entry(item.key().to_owned()).or_insert(list.len());
            if let Some(listed) = list.get_mut(position) {
                listed.item = item;
            } else {
                list.push(CatalogEntry { serial: next_serial, item });
                next_serial += 1;
            }
        }
        Self::of_distinct(list, next_serial, page_size)
    }

    /// Builds a catalog from entries without checking for duplicate keys: the caller guarantees that all keys differ.
    fn of_distinct(list: Vec<CatalogEntry<T>>, next_serial: u64, page_size: usize) -> Self {
        // Sorted by `&str` and not by item, so that this code exists once for all kinds of items.
        let keys = list.iter().enumerate().map(|(position, entry)| (entry.item.key(), position));
        let mut by_key: Vec<(&str, usize)> = keys.collect();
        by_key.sort_unstable();
        let by_key = by_key.into_iter().map(|(_, position)| position).collect();
        Self { list, by_key, next_serial, page_size: page_size.max(1), first_pages: Default::default() }
    }

    /// The catalog's item with that key, if there is one.
    pub(crate) fn find(&self, key: &str) -> Option<&T> {
        self.list.get(self.position(key)?).map(|entry| &entry.item)
    }

    fn position(&self, key: &str) -> Option<usize> {
        let key_at = |position: &usize| self.list.get(*position).map_or("", |entry| entry.item.key());
        let found = self.by_key.binary_search_by(|position| key_at(position).cmp(key)).ok()?;
        self.by_key.get(found).copied()
    }

    /// The items of the catalog, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.list.iter().map(|entry| &entry.item)
    }

    /// Whether the catalog has no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns this catalog with one more item, and the item that the new item replaced.
    pub(crate) fn with(&self, item: T) -> (Self, Option<T>) {
        let mut list = self.list.clone();
        let mut next_serial = self.next_serial;
        let replaced = if let Some(listed) = self.position(item.key()).and_then(|position| list.get_mut(position)) {
            Some(std::mem::replace(&mut listed.item, item))
        } else {
            list.push(CatalogEntry { serial: next_serial, item });
            next_serial += 1;
            None
        };
        (Self::of_distinct(list, next_serial, self.page_size), replaced)
    }

    /// Returns this catalog without the item with that key, and the item; `None` if there is no such item.
    pub(crate) fn without(&self, key: &str) -> Option<(Self, T)> {
        let position = self.position(key)?;
        let mut list = self.list.clone();
        let removed = list.remove(position);
        Some((Self::of_distinct(list, self.next_serial, self.page_size), removed.item))
    }

    /// Returns the encoded result of a list request: the page at the cursor, or the first page. The first page of a
    /// list is encoded when it is first requested, and cached.
    pub(crate) fn list_answer(
        &self,
        cursor: Option<&str>,
        revision: Revision,
        common_members: &PerMessageMembers,
    ) -> Result<Arc<[u8]>, Error> {
        if let Some(cursor) = cursor {
            return self.write_page(self.start_of(cursor)?, revision, common_members);
        }
        let cached = Revision::ALL.iter().position(|known| *known == revision).and_then(|at| self.first_pages.get(at));
        if let Some(page) = cached.and_then(OnceLock::get) {
            return Ok(Arc::clone(page));
        }
        let written = self.write_page(0, revision, common_members)?;
        // If two requests encode the page at the same time, both use the text of the first, which is the same.
        Ok(cached.map_or(written.clone(), |cached| Arc::clone(cached.get_or_init(|| written))))
    }

    fn write_page(
        &self,
        start: usize,
        revision: Revision,
        common_members: &PerMessageMembers,
    ) -> Result<Arc<[u8]>, Error> {
        let end = start.saturating_add(self.page_size).min(self.list.len());
        let page = self.list.get(start..end).unwrap_or_default();
        let definitions = page.iter().map(|entry| entry.item.definition().clone()).collect();
        let last = page.last().filter(|_| end < self.list.len());
        let next = last.map(|last| CatalogCursor::after(T::KIND, last.serial, last.item.key()).encode());
        let mut written = Vec::new();
        wire::write_result(revision, &T::page(definitions, next), common_members, &mut written)
            .map_err(Error::encode)?;
        Ok(written.into())
    }

    /// Returns the position in the list at which the page of a cursor begins. Items that were added since the cursor
    /// was issued are at the end of the list, and the page continues after items that were removed. A cursor of another
    /// list is rejected, because it has no position in this list.
    fn start_of(&self, cursor: &str) -> Result<usize, Error> {
        let read = CatalogCursor::decode(T::KIND, cursor).filter(|cursor| cursor.serial < self.next_serial);
        let refused = || Error::invalid_params("invalid cursor: list again from the beginning");
        let cursor = read.ok_or_else(refused)?;
        match self.list.binary_search_by_key(&cursor.serial, |entry| entry.serial) {
            Ok(found) if self.list.get(found).is_some_and(|entry| cursor.follows(entry.item.key())) => Ok(found + 1),
            Ok(_) => Err(refused()),
            Err(insertion_point) => Ok(insertion_point),
        }
    }
}

/// The current catalog of one kind of item.
pub(crate) struct LiveCatalog<T>(RwLock<Arc<Catalog<T>>>);

impl<T: CatalogItem> LiveCatalog<T> {
    pub(crate) fn new(items: impl IntoIterator<Item = T>, page_size: usize) -> Self {
        Self(RwLock::new(Arc::new(Catalog::new(items, page_size))))
    }

    /// A snapshot of the current catalog.
    pub(crate) fn now(&self) -> Arc<Catalog<T>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds an item to the catalog, and returns the item that it replaced.
    pub(crate) fn add(&self, item: T) -> Option<T> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (catalog, replaced) = current.with(item);
        *current = Arc::new(catalog);
        replaced
    }

    /// Removes an item from the catalog and returns it; `None` if the catalog has no item with that key.
    pub(crate) fn remove(&self, key: &str) -> Option<T> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (catalog, removed) = current.without(key)?;
        *current = Arc::new(catalog);
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use steadfast_model::{Implementation, code};

    use super::*;
    use crate::server::ServerTool;

    fn tool(name: &str, description: &str) -> ServerTool {
        ServerTool::new(name).description(description).handler(|| async {})
    }

    fn catalog(names: &[&str], page_size: usize) -> Catalog<ServerTool> {
        Catalog::new(names.iter().map(|name| tool(name, "")), page_size)
    }

    fn names(tools: &Catalog<ServerTool>) -> Vec<&str> {
        tools.iter().map(ServerTool::name).collect()
    }

    fn common_members() -> PerMessageMembers {
        PerMessageMembers::of_server(&Implementation::new("s", "1"))
    }

    /// The names on a page, and the cursor of the next.
    fn page(tools: &Catalog<ServerTool>, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
        let answer = tools.list_answer(cursor, Revision::LATEST, &common_members()).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let listed = answer["tools"].as_array().unwrap();
        let names = listed.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        (names, answer["nextCursor"].as_str().map(str::to_owned))
    }

    fn refusal(tools: &Catalog<ServerTool>, cursor: &str) -> i64 {
        tools.list_answer(Some(cursor), Revision::LATEST, &common_members()).unwrap_err().object().code
    }

    #[test]
    fn the_order_is_that_of_insertion() {
        let tools = catalog(&["b", "c", "a"], 9);
        assert_eq!(names(&tools), ["b", "c", "a"]);
        assert_eq!(tools.find("a").unwrap().name(), "a");
        assert!(tools.find("d").is_none());
    }

    #[test]
    fn a_replacement_keeps_the_place() {
        let tools = Catalog::new(["b", "c", "a"].map(|name| tool(name, "old")), 9);
        let (tools, replaced) = tools.with(tool("c", "new"));
        assert_eq!(names(&tools), ["b", "c", "a"]);
        assert_eq!(replaced.unwrap().definition().description.as_deref(), Some("old"));
        assert_eq!(tools.find("c").unwrap().definition().description.as_deref(), Some("new"));
    }

    #[test]
    fn the_last_of_two_items_with_one_name_is_used() {
        let tools = Catalog::new([tool("a", "old"), tool("b", ""), tool("a", "new")], 9);
        assert_eq!(names(&tools), ["a", "b"]);
        assert_eq!(tools.find("a").unwrap().definition().description.as_deref(), Some("new"));
    }

    #[test]
    fn a_removed_item_is_not_found() {
        let tools = catalog(&["b", "c", "a"], 9).without("c").unwrap().0;
        assert_eq!(names(&tools), ["b", "a"]);
        assert!(tools.find("c").is_none() && tools.without("c").is_none());
    }

    #[test]
    fn the_first_page_is_encoded_once_per_revision() {
        let tools = catalog(&["a"], 9);
        let first = tools.list_answer(None, Revision::LATEST, &common_members()).unwrap();
        let second = tools.list_answer(None, Revision::LATEST, &common_members()).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        let newest: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(newest["tools"][0]["name"], "a");
        assert_eq!(newest["resultType"], "complete");
        let older = tools.list_answer(None, Revision::V2024_11_05, &common_members()).unwrap();
        let older: Value = serde_json::from_slice(&older).unwrap();
        assert_eq!(older["tools"][0]["name"], "a");
        assert!(older.get("resultType").is_none());
    }

    #[test]
    fn pages_follow_each_other_and_end() {
        let tools = catalog(&["e", "d", "c", "b", "a"], 2);
        let (first, cursor) = page(&tools, None);
        let (second, cursor) = page(&tools, cursor.as_deref());
        let (third, end) = page(&tools, cursor.as_deref());
        assert_eq!([first, second, third].concat(), ["e", "d", "c", "b", "a"]);
        assert_eq!(end, None);
        assert_eq!(page(&catalog(&["a", "b"], 2), None).1, None, "a full page may be the last");
    }

    #[test]
    fn a_cursor_stays_valid_when_items_are_added_and_removed() {
        let tools = catalog(&["a", "b", "c", "d"], 2);
        let cursor = page(&tools, None).1;
        let tools = tools.without("b").unwrap().0.without("c").unwrap().0.with(tool("e", "")).0;
        assert_eq!(page(&tools, cursor.as_deref()).0, ["d", "e"]);
        let tools = tools.without("d").unwrap().0.without("e").unwrap().0;
        assert_eq!(page(&tools, cursor.as_deref()), (vec![], None));
    }

    #[test]
    fn a_cursor_of_another_list_is_an_invalid_parameter() {
        let tools = catalog(&["a", "b", "c"], 1);
        for odd in ["", "x", "0", "💥", &"A".repeat(100_000)] {
            assert_eq!(refusal(&tools, odd), code::INVALID_PARAMS, "{odd:.10}");
        }
        let elsewhere = page(&catalog(&["x", "y"], 1), None).1.unwrap();
        assert_eq!(refusal(&tools, &elsewhere), code::INVALID_PARAMS);
        let beyond = CatalogCursor::after(ServerTool::KIND, 3, "d").encode();
        assert_eq!(refusal(&tools, &beyond), code::INVALID_PARAMS);
        let of_another_kind = CatalogCursor::after(b'?', 0, "a").encode();
        assert_eq!(refusal(&tools, &of_another_kind), code::INVALID_PARAMS);
    }
}
