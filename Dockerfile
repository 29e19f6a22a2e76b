# The gateway as its package, over a base that has Node, but no shell and no package manager, run by a user without rights. Its own
# database goes to /data.

# What is built here is the same on all platforms, so it is built on that of the builder. The final stage only copies.
FROM --platform=$BUILDPLATFORM node:24-slim AS build
# The list of the image's software (SBOM) has the packages of this stage too: the gateway is a bundle of some of them, which
# /app/sbom.cdx.json lists.
ARG BUILDKIT_SBOM_SCAN_STAGE=true
WORKDIR /app
COPY . .
RUN npm ci --no-audit --no-fund && npx tsx package.ts /package
# Without what is never read: source maps, and the CommonJS form of each module.
RUN npm ci --prefix /package --omit=dev --ignore-scripts --no-audit --no-fund \
  && find /package/node_modules '(' -name '*.map' -o -name '*.cjs' ')' -delete
RUN mkdir /data \
  && printf '#!/nodejs/bin/node\nimport("/app/bin/dovetail.js");\n' > /dovetail && chmod 755 /dovetail

FROM gcr.io/distroless/nodejs24-debian13:nonroot
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data WRITE_URL_TO=/tmp/dovetail.url DOVETAIL_COMMAND=dovetail
COPY --from=build /package /app
COPY --from=build /dovetail /usr/local/bin/dovetail
COPY --from=build --chown=65532:65532 /data /data
WORKDIR /app
USER 65532
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["dovetail", "healthcheck"]
ENTRYPOINT ["dovetail"]
CMD ["serve"]
