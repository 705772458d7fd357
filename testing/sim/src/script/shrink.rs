//! Makes what fails smaller while it still fails.

/// Drops as many items as it can, keeping the order, while `fails` says so of what is left. First large runs of items, then
/// smaller ones, then one by one until no single item can go.
pub(crate) fn shrink<T: Clone>(items: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = items.to_vec();
    let mut length = kept.len().div_ceil(2).max(1);
    loop {
        let mut dropped = false;
        let mut start = 0;
        while start < kept.len() {
            let end = (start + length).min(kept.len());
            let without: Vec<T> = kept[..start].iter().chain(&kept[end..]).cloned().collect();
            if fails(&without) {
                kept = without;
                dropped = true;
            } else {
                start = end;
            }
        }
        if length > 1 {
            length = length.div_ceil(2);
        } else if !dropped {
            return kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_kept_in_order_and_nothing_else() {
        let items: Vec<u32> = (0..100).collect();
        let kept = shrink(&items, |items| items.contains(&3) && items.contains(&71) && items.contains(&72));
        assert_eq!(kept, [3, 71, 72]);
    }

    #[test]
    fn what_fails_by_itself_shrinks_to_nothing() {
        assert_eq!(shrink(&[1, 2, 3], |_| true), Vec::<i32>::new());
    }
}
