//! The bare actor: what it costs is what every answer of an actor costs.

use actix::{Actor, Context, Handler, Message};

/// An actor that does nothing but answer.
pub struct Bare {
    pub answered: u64,
}

impl Actor for Bare {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "u64")]
pub struct Ask;

impl Handler<Ask> for Bare {
    type Result = u64;

    fn handle(&mut self, _: Ask, _: &mut Self::Context) -> u64 {
        self.answered += 1;
        self.answered
    }
}
