# The gateway with production packages alone, run by a user without rights. Its own database goes to /data.

FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:24-slim AS build
WORKDIR /app
COPY . .
RUN npm ci --no-audit --no-fund

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json schema.graphql ./
COPY bin bin
COPY prisma prisma
COPY src/graphql/examples src/graphql/examples
COPY src/pages/*.css src/pages/*.html src/pages/*.svg src/pages/
COPY src/rest/*.graphql src/rest/examples.json src/rest/
RUN chmod +x bin/dovetail.js && ln -s /app/bin/dovetail.js /usr/local/bin/dovetail \
  && mkdir --mode=700 /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PORT || 4000}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["dovetail"]
CMD ["serve"]
