//! Symbolic byte counts: a canonical sum of terms, so that `n*sizeof(float)` and `sizeof(float)*n` compare equal.
//!
//! An atom is a value that the lowering could not take apart (an SSA value). Two sums with the same atoms are equal *for the same dynamic
//! instance of each atom*; who compares sums at two places must know that no atom was recomputed in between
//! ([`crate::analysis::program::Program::atoms`] says where each is defined).
//! Arithmetic is in ℤ: the lowering makes a sum only of operations that it knows not to wrap, everything else is an atom.

use std::collections::BTreeMap;

/// An opaque value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AtomId(pub u32);

/// A polynomial with integer coefficients over atoms. The empty product is the constant term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sym {
    /// Coefficient of each product of atoms (sorted, with repetition); no coefficient is 0.
    terms: BTreeMap<Vec<AtomId>, i128>,
}

impl Sym {
    /// A constant.
    #[must_use]
    pub fn constant(value: i128) -> Self {
        let mut terms = BTreeMap::new();
        if value != 0 {
            terms.insert(Vec::new(), value);
        }
        Self { terms }
    }

    /// One atom.
    #[must_use]
    pub fn atom(atom: AtomId) -> Self {
        Self { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    /// The value, where no atom occurs.
    #[must_use]
    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// `self + other`; `None` where a coefficient leaves `i128`.
    #[must_use]
    pub fn add(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        for (product, coefficient) in &other.terms {
            sum.add_term(product.clone(), *coefficient)?;
        }
        Some(sum)
    }

    /// `self - other`; `None` where a coefficient leaves `i128`.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Option<Self> {
        let mut difference = self.clone();
        for (product, coefficient) in &other.terms {
            difference.add_term(product.clone(), coefficient.checked_neg()?)?;
        }
        Some(difference)
    }

    /// `self * other`; `None` where a coefficient leaves `i128`.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Option<Self> {
        let mut result = Self::default();
        for (left, left_coefficient) in &self.terms {
            for (right, right_coefficient) in &other.terms {
                let mut product = [left.as_slice(), right.as_slice()].concat();
                product.sort_unstable();
                result.add_term(product, left_coefficient.checked_mul(*right_coefficient)?)?;
            }
        }
        Some(result)
    }

    /// The atoms that occur.
    pub fn atoms(&self) -> impl Iterator<Item = AtomId> + '_ {
        self.terms.keys().flatten().copied()
    }

    fn add_term(&mut self, product: Vec<AtomId>, coefficient: i128) -> Option<()> {
        let entry = self.terms.entry(product.clone()).or_insert(0);
        *entry = entry.checked_add(coefficient)?;
        if *entry == 0 {
            self.terms.remove(&product);
        }
        Some(())
    }
}

impl From<u64> for Sym {
    fn from(value: u64) -> Self {
        Self::constant(i128::from(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_equal_however_they_were_written() {
        let (n, m) = (Sym::atom(AtomId(0)), Sym::atom(AtomId(1)));
        let four = Sym::constant(4);
        let left = n.mul(&m).and_then(|nm| nm.mul(&four));
        let right = four.mul(&m).and_then(|fm| fm.mul(&n));
        assert!(left.is_some());
        assert_eq!(left, right);
        let twice = n.add(&n);
        assert_eq!(twice, n.mul(&2.into()));
        assert_eq!(n.sub(&n), Some(Sym::default()));
        assert_ne!(n, m);
    }

    #[test]
    fn constants_are_told_from_sums() {
        let n = Sym::atom(AtomId(0));
        assert_eq!(Sym::constant(7).as_constant(), Some(7));
        assert_eq!(Sym::default().as_constant(), Some(0));
        assert_eq!(n.as_constant(), None);
        assert_eq!(n.add(&1.into()).and_then(|sum| sum.as_constant()), None);
        assert_eq!(n.add(&1.into()).and_then(|sum| sum.sub(&n)).and_then(|sum| sum.as_constant()), Some(1));
    }

    #[test]
    fn overflow_is_no_value() {
        let large = Sym::constant(i128::MAX);
        assert_eq!(large.add(&1.into()), None);
        assert_eq!(large.mul(&2.into()), None);
        assert_eq!(Sym::default().sub(&Sym::constant(i128::MIN)), None);
    }
}
