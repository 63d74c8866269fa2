//! The pause between two tries of what has to come off: it grows each time.

use std::time::Duration;

/// A growing pause.
#[derive(Debug)]
pub(super) struct Pause {
    next: Duration,
    longest: Duration,
}

impl Pause {
    /// Begins with `first`, doubles each time, and is never more than `longest`.
    pub(super) const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// How long the next one takes.
    pub(super) const fn next(&self) -> Duration {
        self.next
    }

    /// Lets it pass.
    pub(super) async fn pass(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_grows_up_to_its_longest() {
        let mut pause = Pause::new(Duration::from_millis(50), Duration::from_millis(150));
        let mut passed = Vec::new();
        for _ in 0..4 {
            let begun = tokio::time::Instant::now();
            pause.pass().await;
            passed.push(begun.elapsed().as_millis());
        }
        assert_eq!(passed, [50, 100, 150, 150]);
    }
}
