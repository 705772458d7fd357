//! A map with a limit of entries and of bytes, which evicts the least recently used entries.

use std::collections::BTreeMap;

/// An LRU map (see the [module](self)). The caller says how many bytes each entry counts towards the byte limit.
pub(crate) struct LruMap<K, V> {
    entries: BTreeMap<K, LruEntry<V>>,
    /// The keys by the sequence number of their last use.
    by_last_use: BTreeMap<u64, K>,
    uses: u64,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

struct LruEntry<V> {
    value: V,
    bytes: usize,
    last_use: u64,
}

impl<K: Ord + Clone, V> LruMap<K, V> {
    pub(crate) const fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { entries: BTreeMap::new(), by_last_use: BTreeMap::new(), uses: 0, bytes: 0, max_entries, max_bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Changes the limits of the map, and evicts entries that exceed them.
    pub(crate) fn set_limits(&mut self, max_entries: usize, max_bytes: usize) {
        (self.max_entries, self.max_bytes) = (max_entries, max_bytes);
        self.evict();
    }

    /// The maximum numbers of entries and of bytes in the LRU map.
    pub(crate) fn limits(&self) -> (usize, usize) {
        (self.max_entries, self.max_bytes)
    }

    /// The value of a key in the LRU map. A lookup counts as a use, so that the entry becomes the most recently used.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        self.by_last_use.remove(&entry.last_use);
        self.uses += 1;
        entry.last_use = self.uses;
        self.by_last_use.insert(entry.last_use, key.clone());
        Some(&entry.value)
    }

    /// Inserts a value in place of the previous value of the key. A value larger than the byte limit is not inserted,
    /// and the previous value of its key is removed.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if bytes > self.max_bytes {
            return;
        }
        self.uses += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_last_use.insert(self.uses, key.clone());
        self.entries.insert(key, LruEntry { value, bytes, last_use: self.uses });
        self.evict();
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_last_use.remove(&entry.last_use);
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }

    /// Removes all entries whose key does not satisfy `keep`. Returns the number of removed entries.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) -> usize {
        let removed: Vec<K> = self.entries.keys().filter(|key| !keep(key)).cloned().collect();
        for key in &removed {
            self.remove(key);
        }
        removed.len()
    }

    fn evict(&mut self) {
        while self.entries.len() > self.max_entries || self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.by_last_use.pop_first() else { break };
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted_first() {
        let mut map = LruMap::new(2, 100);
        map.insert('a', 1, 1);
        map.insert('b', 2, 1);
        assert_eq!(map.get(&'a'), Some(&1));
        map.insert('c', 3, 1);
        let values = ['a', 'b', 'c'].map(|key| map.get(&key).copied());
        assert_eq!(values, [Some(1), None, Some(3)]);
    }

    #[test]
    fn bytes_are_limited_and_freed_when_entries_are_removed() {
        let mut map = LruMap::new(100, 10);
        map.insert('a', 1, 6);
        map.insert('a', 2, 6);
        map.insert('b', 3, 4);
        assert_eq!((map.len(), map.bytes), (2, 10));
        map.insert('c', 4, 1);
        assert_eq!((map.len(), map.bytes, map.get(&'a').is_none()), (2, 5, true));
        map.insert('d', 5, 11);
        assert_eq!((map.len(), map.get(&'d').is_none()), (2, true));
        assert_eq!(map.retain(|key| *key != 'b'), 1);
        assert_eq!((map.len(), map.bytes), (1, 1));
        map.set_limits(0, 0);
        assert_eq!((map.len(), map.bytes, map.by_last_use.len()), (0, 0, 0));
    }
}
