//! Categories, and which lie below which.

use std::collections::BTreeSet;

/// A category of the shop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// What the shop itself calls it.
    pub key: String,
    /// What a filter names it by, as products show it.
    pub value: String,
    /// The key of the category above it.
    pub parent: Option<String>,
}

/// All categories of a shop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(Vec<Branch>);

impl Tree {
    /// A tree of these; parents may be missing.
    #[must_use]
    pub const fn new(branches: Vec<Branch>) -> Self {
        Self(branches)
    }

    fn named<'a>(&'a self, values: &'a [String]) -> impl Iterator<Item = &'a Branch> {
        let named = |branch: &&Branch| values.iter().any(|value| value.eq_ignore_ascii_case(&branch.value));
        self.0.iter().filter(named)
    }

    /// The keys of the categories with these values; values that there are not have none.
    #[must_use]
    pub fn keys(&self, values: &[String]) -> Vec<String> {
        self.named(values).map(|branch| branch.key.clone()).collect()
    }

    /// These values and those of all categories below them.
    #[must_use]
    pub fn with_those_below(&self, values: &[String]) -> Vec<String> {
        let mut within: BTreeSet<&str> = self.named(values).map(|branch| branch.key.as_str()).collect();
        loop {
            let below = |branch: &&Branch| branch.parent.as_deref().is_some_and(|key| within.contains(key));
            let more: Vec<&str> = self.0.iter().filter(below).map(|branch| branch.key.as_str()).collect();
            let before = within.len();
            within.extend(more);
            if within.len() == before {
                break;
            }
        }
        let below = self.0.iter().filter(|branch| within.contains(branch.key.as_str()));
        values.iter().cloned().chain(below.map(|branch| branch.value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let branch = |key: &str, value: &str, parent: Option<&str>| Branch {
            key: key.to_owned(),
            value: value.to_owned(),
            parent: parent.map(str::to_owned),
        };
        Tree::new(vec![
            branch("3", "mugs", Some("2")),
            branch("1", "home", None),
            branch("2", "kitchen", Some("1")),
            branch("4", "17", None),
            // In a circle, as a broken import leaves them.
            branch("5", "a", Some("6")),
            branch("6", "b", Some("5")),
        ])
    }

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn values_are_not_keys() {
        assert_eq!(tree().keys(&texts(&["Mugs", "17", "1"])), ["3", "4"]);
        assert!(tree().keys(&texts(&["3"])).is_empty());
    }

    #[test]
    fn what_lies_below_belongs_to_it() {
        let mut home = tree().with_those_below(&texts(&["home"]));
        home.sort();
        home.dedup();
        assert_eq!(home, ["home", "kitchen", "mugs"]);
        assert_eq!(tree().with_those_below(&texts(&["nothing"])), ["nothing"]);
        assert!(tree().with_those_below(&texts(&["a"])).contains(&"b".to_owned()));
    }
}
