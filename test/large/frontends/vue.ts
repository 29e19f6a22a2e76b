/** Mounts the component of docs/clients.md in Vue. */

import urql from '@urql/vue';
import { createApp } from 'vue';
import Templates from './generated/docs/app/src/Templates.vue';
import { client } from './generated/docs/app/src/urqlClient.ts';

createApp(Templates).use(urql, client).mount(document.body);
