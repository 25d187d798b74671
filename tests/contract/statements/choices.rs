//! What the sources leave open is tried with every outcome, one combination after the other.

use std::collections::HashMap;

/// The outcome of each open decision in the current combination.
#[derive(Default)]
pub struct Choices {
    /// The outcomes in the order in which the decisions appear, and how many outcomes each has.
    outcomes: Vec<(usize, usize)>,
    position: usize,
    by_key: HashMap<String, usize>,
}

impl Choices {
    /// The outcome of a decision. One with the same key has the same outcome.
    pub fn choose(&mut self, key: &str, count: usize) -> usize {
        if let Some(outcome) = self.by_key.get(key) {
            return *outcome;
        }
        if self.position == self.outcomes.len() {
            self.outcomes.push((0, count));
        }
        let (outcome, _) = self.outcomes[self.position];
        self.position += 1;
        self.by_key.insert(key.to_owned(), outcome);
        outcome
    }

    /// Begins the next combination; false when there is none.
    pub fn advance(&mut self) -> bool {
        self.position = 0;
        self.by_key.clear();
        while let Some((outcome, count)) = self.outcomes.pop() {
            if outcome + 1 < count {
                self.outcomes.push((outcome + 1, count));
                return true;
            }
        }
        false
    }
}
