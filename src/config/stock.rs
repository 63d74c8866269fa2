//! How the shops' stock is looked after.

use serde::{Deserialize, Serialize};

use super::Problems;

/// How the shops' stock is looked after.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stock {
    /// Seconds between two reconciliations with a shop.
    pub poll_secs: u64,
}

impl Stock {
    pub(super) fn check(&self, problems: &mut Problems) {
        if !(1..=3600).contains(&self.poll_secs) {
            problems.add("stock.poll_secs", format!("{} is not between 1 and 3600", self.poll_secs));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    #[test]
    fn a_poll_interval_is_bounded() {
        for (seconds, wrong) in [(0, 1), (1, 0), (3600, 0), (3601, 1)] {
            let settings = Settings::from_toml(&format!("[stock]\npoll_secs = {seconds}")).unwrap();
            let problems = settings.problems();
            let found = problems.iter().filter(|problem| problem.key == "stock.poll_secs").count();
            assert_eq!(found, wrong, "{seconds}");
        }
    }
}
