FROM rust:1.95-bookworm AS chef
RUN cargo install cargo-chef --locked
WORKDIR /build

FROM chef AS plan
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

FROM chef AS build
COPY --from=plan /build/recipe.json recipe.json
RUN cargo chef cook --release --recipe-path recipe.json
COPY . .
RUN cargo build --release --locked --bin tillgate

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 tillgate && mkdir /data && chown tillgate /data
COPY --from=build /build/target/release/tillgate /usr/local/bin/tillgate
USER tillgate
VOLUME /data
ENV TILLGATE__SERVER__LISTEN=0.0.0.0:8787 TILLGATE__SERVER__DATA=/data TILLGATE__LOG__FORMAT=json
EXPOSE 8787
ENTRYPOINT ["tillgate"]
CMD ["serve", "--config", "/etc/tillgate.toml"]
