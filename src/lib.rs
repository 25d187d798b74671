//! Hotline: a customer-service and CRM API in one binary.
//!
//! This crate is the outer layer: HTTP, the command line, and the order of startup and shutdown. Live records are in
//! `hotline-actors`, storage is in `hotline-persistence`.

pub mod api;
pub mod app;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod deliveries;
pub mod exit_code;
pub mod health;
pub mod hooks;
pub mod mail;
pub mod media;
pub mod metrics;
pub mod openapi;
pub mod outbound;
pub mod panel;
pub mod providers;
pub mod routes;
pub mod service;
pub mod telemetry;
pub mod templates;
pub mod tls;
pub mod version;
pub mod visitors;
pub mod web;
pub mod web_address;
pub mod webhooks;
