//! Sales: what is sold, and the boards it is sold on.

mod labels;
