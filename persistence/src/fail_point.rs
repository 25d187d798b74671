//! Named points at which a test makes the code fail.

/// Such a point, as [`fail::fail_point`] has them. Without the feature `failpoints` it is nothing, and the crate behind
/// it is not built.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! fail_point {
    ($($arguments:tt)*) => { $crate::fail::fail_point!($($arguments)*) };
}

/// Such a point: nothing, without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! fail_point {
    ($($arguments:tt)*) => {};
}
