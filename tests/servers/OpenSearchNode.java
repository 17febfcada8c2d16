import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node from its jars: settings as key=value arguments, READY when it serves, ends when stdin closes. */
final class OpenSearchNode extends Node {
    private OpenSearchNode(Settings settings) {
        super(
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "node"),
                List.of(Netty4Plugin.class, ReindexPlugin.class),
                false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Node node = new OpenSearchNode(settings.build()).start();
        System.out.println("READY");
        while (System.in.read() >= 0) {}
        node.close();
        System.exit(0);
    }
}
