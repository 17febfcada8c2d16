import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.DataNodeFaultInjector;
import org.apache.hadoop.hdfs.server.namenode.NameNode;

/**
 * One HDFS node from its jars: `name` or `data`, then settings as key=value; READY when it has started. The name node does
 * what it is told on stdin and says DONE with the number it was told; both end when stdin closes.
 */
final class HdfsNode {
    public static void main(String[] arguments) throws Exception {
        Configuration settings = new HdfsConfiguration();
        for (int n = 1; n < arguments.length; n++) {
            String[] pair = arguments[n].split("=", 2);
            settings.set(pair[0], pair[1]);
        }
        if (arguments[0].equals("data")) {
            DataNodeFaultInjector.set(new ReportsFirst());
            DataNode.instantiateDataNode(new String[0], settings).runDatanodeDaemon();
            System.out.println("READY");
            while (System.in.read() >= 0) {}
            System.exit(0);
        }
        if (!new java.io.File(settings.get("dfs.namenode.name.dir"), "current").exists()) {
            NameNode.format(settings);
        }
        NameNode node = new NameNode(settings);
        System.out.println("READY");
        BufferedReader told = new BufferedReader(new InputStreamReader(System.in));
        for (String line = told.readLine(); line != null; line = told.readLine()) {
            obey(line.split(" "), settings);
        }
        node.stop();
        System.exit(0);
    }

    /** NUMBER safemode enter|leave, NUMBER quota PATH NAMES BYTES (-1: none). */
    private static void obey(String[] words, Configuration settings) {
        try (DistributedFileSystem files = new DistributedFileSystem()) {
            files.initialize(new Path(settings.get("fs.defaultFS")).toUri(), settings);
            if (words[1].equals("safemode")) {
                files.setSafeMode(words[2].equals("enter") ? SafeModeAction.SAFEMODE_ENTER : SafeModeAction.SAFEMODE_LEAVE);
            } else {
                files.setQuota(new Path(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4]));
            }
            System.out.println("DONE " + words[0]);
        } catch (Exception failure) {
            System.out.println("FAILED " + words[0] + " " + failure);
        }
    }

    /**
     * A block's report is on its way to the name node before its last packet is acknowledged. A client on the same machine
     * would else ask the name node to close the file before the report is there, is told to wait, and sleeps for half a second.
     */
    private static final class ReportsFirst extends DataNodeFaultInjector {
        private static final int HEAD_START_MS = 20;

        @Override
        public void delayAckLastPacket() {
            try {
                Thread.sleep(HEAD_START_MS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
