//! The shop as protocols show it: addresses, links, handlers, agents. Made from configuration.

use serde_json::{Map, Value};
use url::Url;

use crate::{checkout::ids::ShopId, money::Currency};

/// What protocols know of a shop.
#[derive(Debug, Clone)]
pub struct ShopFace {
    /// Its name in configuration.
    pub id: ShopId,
    /// Its name for people.
    pub title: String,
    /// The gateway's own public address for this shop, without a trailing slash: endpoints in profiles.
    pub public_url: String,
    /// An https address of the gateway, without a trailing slash: `continue_url`.
    pub https_base: String,
    /// The shop's home page.
    pub home_url: Url,
    /// The one currency it sells in.
    pub currency: Currency,
    /// Whether UCP amounts include tax, as the shop displays them.
    pub prices_with_tax: bool,
    /// Policy pages.
    pub links: Links,
    /// Ways to pay, in order.
    pub handlers: Vec<HandlerFace>,
    /// ACP agents and the digests of their bearer tokens.
    pub agents: Vec<Agent>,
    /// BCP 47 languages of the shop's texts, for ACP discovery; may be empty.
    pub locales: Vec<String>,
    /// Whether development rules hold (loopback profiles over http, stand-ins).
    pub development: bool,
    /// Most lines a request may ask for.
    pub max_lines: usize,
    /// Most units of one line.
    pub max_quantity: u32,
}

/// Policy pages of a shop; absolute addresses.
#[derive(Debug, Clone, Default)]
pub struct Links {
    /// Terms of service.
    pub terms: Option<Url>,
    /// Privacy policy.
    pub privacy: Option<Url>,
    /// Refunds and returns.
    pub refunds: Option<Url>,
    /// Shipping.
    pub shipping: Option<Url>,
    /// Contact or support.
    pub contact: Option<Url>,
}

/// A way to pay, as it is advertised.
#[derive(Debug, Clone)]
pub struct HandlerFace {
    /// Our id of it: what `handler_id` must match.
    pub id: String,
    /// The payment method at the shop; the handler is offered only while the cart takes it.
    pub method: String,
    /// Whether it is offered although the shop does not list the method for the cart.
    pub always: bool,
    /// How UCP shows it; `None` hides it there.
    pub ucp: Option<UcpHandler>,
    /// How ACP shows it; `None` hides it there.
    pub acp: Option<AcpHandler>,
}

/// A handler in UCP's registry (`payment_handler.json`).
#[derive(Debug, Clone)]
pub struct UcpHandler {
    /// Reverse-domain name of the handler's specification: the group.
    pub name: String,
    /// Version of that specification.
    pub version: String,
    /// Its page.
    pub spec: Option<String>,
    /// Its schema.
    pub schema: Option<String>,
    /// Instrument types it takes, for example `card`; empty sets no restriction.
    pub instrument_types: Vec<String>,
    /// Its configuration.
    pub config: Map<String, Value>,
}

/// A handler in ACP's list (`PaymentHandler`).
#[derive(Debug, Clone)]
pub struct AcpHandler {
    /// Reverse-domain name, for example `dev.acp.tokenized.card`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its page.
    pub spec: String,
    /// For people.
    pub display_name: Option<String>,
    /// The payment service provider.
    pub psp: String,
    /// Whether the agent must fetch a delegated token.
    pub requires_delegate_payment: bool,
    /// Whether card data is handled directly.
    pub requires_pci_compliance: bool,
    /// Schema of `config`.
    pub config_schema: String,
    /// Schemas of the instruments.
    pub instrument_schemas: Vec<String>,
    /// Its configuration; must hold `merchant_id` and `psp`.
    pub config: Map<String, Value>,
}

/// An ACP agent: its id and its tokens, as SHA-256 digests.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its id: the caller is `acp:` + this, whatever token it uses.
    pub id: String,
    /// SHA-256 of each token that is valid now.
    pub token_digests: Vec<[u8; 32]>,
}
