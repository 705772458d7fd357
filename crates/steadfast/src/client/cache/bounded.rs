//! A map that holds so much and no more: what was not used for longest goes first.

use std::collections::BTreeMap;

/// See the [module](self). `bytes` of an entry are what it counts for.
pub(crate) struct LruMap<K, V> {
    entries: BTreeMap<K, CacheSlot<V>>,
    /// The keys, by when they were used last.
    order: BTreeMap<u64, K>,
    uses: u64,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

struct CacheSlot<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Ord + Clone, V> LruMap<K, V> {
    /// For so many entries, and entries of so many bytes.
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), uses: 0, bytes: 0, most, most_bytes }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Other bounds.
    pub(crate) fn resize(&mut self, most: usize, most_bytes: usize) {
        (self.most, self.most_bytes) = (most, most_bytes);
        self.shrink();
    }

    /// The bounds.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.most, self.most_bytes)
    }

    /// The value, which counts as a use of it.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        let held = self.entries.get_mut(key)?;
        self.order.remove(&held.used);
        self.uses += 1;
        held.used = self.uses;
        self.order.insert(held.used, key.clone());
        Some(&held.value)
    }

    /// Puts a value in the place of the one before. One that is too large is not taken.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        if bytes > self.most_bytes {
            return;
        }
        self.uses += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.insert(self.uses, key.clone());
        self.entries.insert(key, CacheSlot { value, bytes, used: self.uses });
        self.shrink();
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(held) = self.entries.remove(key) {
            self.order.remove(&held.used);
            self.bytes = self.bytes.saturating_sub(held.bytes);
        }
    }

    /// Keeps only the entries of these keys. Returns how many others there were.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) -> usize {
        let gone: Vec<K> = self.entries.keys().filter(|key| !keep(key)).cloned().collect();
        for key in &gone {
            self.remove(key);
        }
        gone.len()
    }

    fn shrink(&mut self) {
        while self.entries.len() > self.most || self.bytes > self.most_bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut map = LruMap::new(2, 100);
        map.insert('a', 1, 1);
        map.insert('b', 2, 1);
        assert_eq!(map.get(&'a'), Some(&1));
        map.insert('c', 3, 1);
        let cache = ['a', 'b', 'c'].map(|key| map.get(&key).copied());
        assert_eq!(cache, [Some(1), None, Some(3)]);
    }

    #[test]
    fn bytes_are_bounded_and_come_back_with_what_goes() {
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
        map.resize(0, 0);
        assert_eq!((map.len(), map.bytes, map.order.len()), (0, 0, 0));
    }
}
