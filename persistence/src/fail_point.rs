//! Named points at which tests inject failures.

/// A failpoint, as in [`fail::fail_point`]. Without the feature `failpoints` it expands to nothing, and the `fail`
/// crate is not built.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! fail_point {
    ($($arguments:tt)*) => { $crate::fail::fail_point!($($arguments)*) };
}

/// A failpoint: expands to nothing without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! fail_point {
    ($($arguments:tt)*) => {};
}
