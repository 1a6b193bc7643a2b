// SPDX-License-Identifier: Apache-2.0
// Bun's own S3 client: what it writes into the URLs that it signs (X-Amz-Acl, response-content-type of a PUT), ranges, types, classes.  The
// bucket `bun` is there.
import assert from "node:assert/strict";
import { credentials, endpoint, fetched, run, step, tampered } from "./lib.mjs";

const bucket = "bun";
const s3 = new Bun.S3Client({ ...credentials, endpoint, bucket, region: "us-east-1" });
await s3.write("five", "12345");
await s3.write("empty", "");

step("a PUT by URL with acl, type, contentDisposition", async () => {
  for (const more of [{ acl: "private" }, { acl: "bucket-owner-full-control" }, { type: "image/png" }, { contentDisposition: 'attachment; filename="x.png"' },
    { storageClass: "STANDARD_IA" }, { requestPayer: true }, { acl: "private", type: "image/png", contentDisposition: "inline", storageClass: "STANDARD_IA" }]) {
    const url = s3.presign("up", { method: "PUT", expiresIn: 600, ...more });
    await fetched(tampered(url), { method: "PUT", body: "x" }, 403);
    await fetched(url, { method: "PUT", body: JSON.stringify(more) }, 200);
    assert.equal(await s3.file("up").text(), JSON.stringify(more));
    await s3.delete("up");
  }
  await fetched(s3.presign("up", { method: "PUT", acl: "public-read" }), { method: "PUT", body: "x" }, 400);
});

step("a GET by URL with type, contentDisposition", async () => {
  for (const method of ["GET", "HEAD"]) {
    const url = s3.presign("five", { method, type: "image/png", contentDisposition: "inline", acl: "private", expiresIn: 600 });
    const { headers } = await fetched(url, { method }, 200);
    assert.deepEqual([headers.get("content-type"), headers.get("content-disposition")], ["image/png", "inline"]);
  }
});

step("a preflight needs no signature", async () => {
  const url = s3.presign("up", { method: "PUT", acl: "private", type: "image/png" });
  // No rules: refused for that, and not for a signature or a parameter.
  const { text } = await fetched(url, { method: "OPTIONS", headers: { origin: "http://app.test", "access-control-request-method": "PUT" } }, 403);
  assert.match(text, /CORS/);
});

step("ranges and types", async () => {
  assert.equal(await s3.file("five").slice(1, 3).text(), "23");
  assert.equal(await s3.file("empty").text(), "");
  await fetched(s3.presign("typeless", { method: "PUT" }), { method: "PUT", body: new Uint8Array(3) }, 200);
  assert.equal((await s3.stat("typeless")).type, "binary/octet-stream");
  await s3.write("typed", "x", { type: "image/png", acl: "private", storageClass: "STANDARD_IA" });
  assert.equal((await s3.stat("typed")).type, "image/png");
  assert((await s3.list({ prefix: "typed" })).contents.some((o) => o.key === "typed" && o.storageClass === "STANDARD_IA"));
});

step("parts by its writer", async () => {
  const writer = s3.file("parts").writer({ partSize: 5 << 20, queueSize: 2, type: "image/png", acl: "private" });
  for (let i = 0; i < 12; i++) await writer.write(new Uint8Array(1 << 20).fill(i));
  await writer.end();
  const { size, type, etag } = await s3.stat("parts");
  assert.deepEqual([size, type, /-3"?$/.test(etag)], [12 << 20, "image/png", true]);
});

await run("bun");
