//! Owns the generator of `Math.random` (xoshiro256++, Blackman and Vigna 2019). Not for secrets: scripts see its output.

use std::cell::Cell;

/// The generator. Forked sessions start with a copy of the zygote's memory, so each gets a new seed.
pub(super) struct Random {
    state: Cell<[u64; 4]>,
}

impl Default for Random {
    fn default() -> Self {
        Self { state: Cell::new([1, 2, 3, 4]) }
    }
}

impl Random {
    /// Seeds the generator. All zeros are a fixed point of the generator and are replaced.
    pub(super) fn seed(&self, seed: &[u8; 32]) {
        let mut state = [0; 4];
        for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
            *word = bytes.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        }
        self.state.set(if state == [0; 4] { [1, 2, 3, 4] } else { state });
    }

    /// A number from 0 (included) to 1 (excluded) with 53 random bits.
    pub(super) fn next(&self) -> f64 {
        let mut s = self.state.get();
        let bits = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        self.state.set(s);
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn seeds_produce_different_numbers_within_the_unit_interval() {
        let (one, two) = (Random::default(), Random::default());
        one.seed(&[1; 32]);
        two.seed(&[2; 32]);
        let first: Vec<f64> = (0..100).map(|_| one.next()).collect();
        let second: Vec<f64> = (0..100).map(|_| two.next()).collect();
        assert_ne!(first, second);
        assert!(first.iter().chain(&second).all(|number| (0.0..1.0).contains(number)));
    }

    #[test]
    fn a_seed_of_zeros_does_not_produce_zeros() {
        let random = Random::default();
        random.seed(&[0; 32]);
        assert!((0..10).any(|_| random.next() > 0.0));
    }
}
